#pragma once

#include <string_view>

#include "attn/ops/attention.hpp"

// What the functions of attention without a layer share: queries, keys and values by heads, (..,L,D) and (..,S,D). Internal to ops.
namespace attn::detail {

/// What follows from a call on q (..,L,Dq), k (..,S,Dk), v (..,S,Dv) and its options, but for the scale and, where `own_widths`, the width in
/// which queries meet keys; else Dq = Dk is that.
struct CheckedInputs {
  AttentionSpec spec;
  AttentionSizes sizes;
  Shape output;
};
CheckedInputs check_attention_inputs(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                                     const AttentionOptions& options, bool own_widths);

/// Keys and values of a call, those of its past before them: the plan's present where it has one.
KeyValueView join_past(const AttentionPlan& plan, const TensorView& key, const TensorView& value, const AttentionOptions& options,
                       const AttentionBuffers& buffers);

/// The traces that are inputs or outputs of attention_core.
void copy_input_traces(const AttentionPlan& plan, const TensorView& query, const KeyValueView& keys, const AttentionBuffers& buffers);

}  // namespace attn::detail
