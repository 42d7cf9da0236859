#pragma once

#include <string_view>

#include "attn/ops/score_functions.hpp"
#include "attn/store/scratch.hpp"

// Checks shared by additive and general attention and their gradients. Internal to ops.
namespace attn::detail {

/// Throws SHAPE if the tensors do not fit; returns A.
std::int64_t check_additive_params(std::string_view op, const AdditiveParams& params, const AttentionSizes& sizes);
void check_general_weight(std::string_view op, const TensorView& weight, const AttentionSizes& sizes);

/// Computes x Wᵀ + b (rows,out) in the scratch; bias may be null.
const float* project(const TensorView& x, const TensorView& weight, const float* bias, Scratch& scratch);
/// Returns the view (columns,rows) of a weight (rows,columns).
inline TensorView transposed(const TensorView& weight) {
  return {weight.data, {weight.shape[1], weight.shape[0]}, {weight.strides[1], weight.strides[0]}};
}

}  // namespace attn::detail
