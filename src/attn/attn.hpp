#pragma once

/// Everything public.
#include "attn/io/safetensors.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/init.hpp"
#include "attn/ops/linear.hpp"
#include "attn/ops/mask.hpp"
#include "attn/ops/softmax.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/tensor.hpp"
