#pragma once

#include <string_view>

#include "attn/ops/attention_backward.hpp"
#include "attn/ops/attention_inputs.hpp"

// What the gradients of the functions of attention share. Internal to ops.
namespace attn::detail {

/// check_attention_inputs() of the forward, and that grad fits; what a forward returns beside its output is left out of the spec.
CheckedInputs check_attention_gradients(std::string_view op, const TensorView& grad, const TensorView& query, const TensorView& key,
                                        const TensorView& value, const AttentionOptions& options, bool own_widths);

/// The plan of the forward, whose traces have the gradients' shapes. Adds gradients, traces and the core's work space to the memory and throws
/// MEMORY when it is too much.
AttentionPlan plan_gradients(std::string_view op, const AttentionSpec& spec, const CheckedInputs& checked, const TensorView& query,
                             const TensorView& key, const TensorView& value, bool additive, MemoryEstimate& memory);

/// The traces that are gradients of inputs, or the gradient that came in.
void copy_gradient_traces(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                          const AttentionGradientBuffers& to);

}  // namespace attn::detail
