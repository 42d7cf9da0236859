#pragma once

/// All of the library on views, without xtensor: what attn.hpp has beside it returns xtensor's tensors, which only exist where attn.hpp
/// or one of its parts is included.
#ifndef ATTN_VIEWS_ONLY
#define ATTN_VIEWS_ONLY
#endif
#include "attn/context.hpp"
#include "attn/io/safetensors.hpp"
#include "attn/io/tokenizer.hpp"
#include "attn/layers/embedding.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/layers/transformer_classifier.hpp"
#include "attn/layers/transformer_encoder.hpp"
#include "attn/layers/transformer_encoder_layer.hpp"
#include "attn/models/text_model.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/init.hpp"
#include "attn/ops/linear.hpp"
#include "attn/ops/mask_view.hpp"
#include "attn/ops/norm.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/ops/positions.hpp"
#include "attn/ops/score_functions.hpp"
#include "attn/ops/softmax.hpp"
#include "attn/parallel/executor.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/view.hpp"
