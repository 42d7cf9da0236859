#pragma once

#include <string_view>

#include "attn/ops/attention.hpp"

// Inputs by heads: (..,L,D) and (..,S,D). Internal.
namespace attn::detail {

/// The caller still sets the scale and, if `own_widths` (Dq and Dk may differ), head_dim.
struct CheckedInputs {
  AttentionSpec spec;
  AttentionSizes sizes;
  Shape output;
};
CheckedInputs check_attention_inputs(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                                     const AttentionOptions& options, bool own_widths);

/// Joined in the buffers of the plan's present, if there is one.
KeyValueView join_past(const AttentionPlan& plan, const TensorView& key, const TensorView& value, const AttentionOptions& options,
                       const AttentionBuffers& buffers);

void copy_input_traces(const AttentionPlan& plan, const TensorView& query, const KeyValueView& keys, const AttentionBuffers& buffers);

}  // namespace attn::detail
