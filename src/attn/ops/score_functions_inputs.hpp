#pragma once

#include <string_view>

#include "attn/ops/score_functions.hpp"

// What additive and general attention check, and their gradients as well. Internal to ops.
namespace attn::detail {

/// Throws SHAPE where the tensors do not fit; returns A.
std::int64_t check_additive_params(std::string_view op, const AdditiveParams& params, const AttentionSizes& sizes);
void check_general_weight(std::string_view op, const TensorView& weight, const AttentionSizes& sizes);

}  // namespace attn::detail
