#pragma once

#include <string_view>

#include "attn/ops/attention_inputs.hpp"
#include "attn/ops/score_functions.hpp"
#include "attn/store/scratch.hpp"

// Checks shared by additive and general attention and their gradients. Internal to ops.
namespace attn::detail {

/// Returns the spec of the attention whose queries and keys are the projections. Throws SHAPE if the parameters do not fit, CONFIG for the scale.
AttentionSpec additive_spec(std::string_view op, const CheckedInputs& checked, const AdditiveParams& params, const AttentionOptions& options);
AttentionSpec general_spec(std::string_view op, const CheckedInputs& checked, const TensorView& weight, const AttentionOptions& options);

/// Computes x Wᵀ + b (rows,out) in the scratch; bias may be null.
const float* project(const TensorView& x, const TensorView& weight, const float* bias, Scratch& scratch);
/// Returns the view (columns,rows) of a weight (rows,columns).
inline TensorView transposed(const TensorView& weight) {
  return {weight.data, {weight.shape[1], weight.shape[0]}, {weight.strides[1], weight.strides[0]}};
}

}  // namespace attn::detail
