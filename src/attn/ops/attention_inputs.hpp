#pragma once

#include <string_view>

#include "attn/ops/attention.hpp"

// Shared by the attention functions, whose queries, keys and values are given by heads, (..,L,D) and (..,S,D). Internal to ops.
namespace attn::detail {

/// Spec, sizes and output shape of a call with q (..,L,Dq), k (..,S,Dk), v (..,S,Dv) and its options. The caller still has to set the scale
/// and, if `own_widths` (Dq and Dk may differ), head_dim; otherwise head_dim = Dq = Dk.
struct CheckedInputs {
  AttentionSpec spec;
  AttentionSizes sizes;
  Shape output;
};
CheckedInputs check_attention_inputs(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                                     const AttentionOptions& options, bool own_widths);

/// Returns the keys and values of a call, preceded by those of its past. If the plan has a present, they are written to its buffers.
KeyValueView join_past(const AttentionPlan& plan, const TensorView& key, const TensorView& value, const AttentionOptions& options,
                       const AttentionBuffers& buffers);

/// Copies the traces that are inputs or outputs of attention_core.
void copy_input_traces(const AttentionPlan& plan, const TensorView& query, const KeyValueView& keys, const AttentionBuffers& buffers);

}  // namespace attn::detail
