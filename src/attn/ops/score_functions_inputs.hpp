#pragma once

#include <string_view>

#include "attn/memory/scratch.hpp"
#include "attn/ops/attention_inputs.hpp"
#include "attn/ops/score_functions.hpp"

namespace attn::detail {

AttentionSpec additive_spec(std::string_view op, const CheckedInputs& checked, const AdditiveParams& params, const AttentionOptions& options);
AttentionSpec general_spec(std::string_view op, const CheckedInputs& checked, const TensorView& weight, const AttentionOptions& options);

/// x Wᵀ + b (rows,out) in the scratch; bias may be null
const float* project(const TensorView& x, const TensorView& weight, const float* bias, Scratch& scratch);
inline TensorView transposed(const TensorView& weight) {
  return {weight.data, {weight.shape[1], weight.shape[0]}, {weight.strides[1], weight.strides[0]}};
}

}  // namespace attn::detail
