#pragma once

#ifndef __cpp_concepts
#error "attn needs C++20: compile with -std=c++20"
#endif

/// Includes the whole API on views, without xtensor. Functions that return xtensor tensors can be called only if
/// attn.hpp or one of its headers is included.
#ifndef ATTN_VIEWS_ONLY
#define ATTN_VIEWS_ONLY
#endif
#include "attn/context.hpp"
#include "attn/io/safetensors.hpp"
#include "attn/io/tokenizer.hpp"
#include "attn/layers/embedding_layer.hpp"
#include "attn/layers/multi_head_attention.hpp"
#include "attn/layers/transformer_classifier.hpp"
#include "attn/layers/transformer_encoder.hpp"
#include "attn/layers/transformer_encoder_layer.hpp"
#include "attn/models/image_model.hpp"
#include "attn/models/lens.hpp"
#include "attn/models/text_model.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/activation_backward.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/attention_backward.hpp"
#include "attn/ops/init.hpp"
#include "attn/ops/linear.hpp"
#include "attn/ops/linear_backward.hpp"
#include "attn/ops/losses.hpp"
#include "attn/ops/mask_view.hpp"
#include "attn/ops/norm.hpp"
#include "attn/ops/norm_backward.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/ops/positions.hpp"
#include "attn/ops/rotary_backward.hpp"
#include "attn/ops/score_functions.hpp"
#include "attn/ops/score_functions_backward.hpp"
#include "attn/ops/softmax.hpp"
#include "attn/ops/softmax_backward.hpp"
#include "attn/parallel/executor.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/view.hpp"
#include "attn/train/adam.hpp"
#include "attn/train/clip_grad_norm.hpp"
#include "attn/train/schedules.hpp"
#include "attn/train/sgd.hpp"
