#pragma once

#include <string_view>

#include "attn/ops/attention_backward.hpp"
#include "attn/ops/attention_inputs.hpp"

// Shared by the gradients of the attention functions. Internal to ops.
namespace attn::detail {

/// Calls check_attention_inputs() and checks the shape of grad. Clears need_weights, average_weights and output_present in the spec. Throws
/// UNSUPPORTED for a past.
CheckedInputs check_attention_gradients(std::string_view op, const TensorView& grad, const TensorView& query, const TensorView& key,
                                        const TensorView& value, const AttentionOptions& options, bool own_widths);

/// Returns the plan of the forward, whose trace shapes are those of the gradients. Adds gradients, traces and the core's workspace to the
/// memory estimate and throws MEMORY if it exceeds the limit.
AttentionPlan plan_gradients(std::string_view op, const AttentionSpec& spec, const CheckedInputs& checked, const TensorView& query,
                             const TensorView& key, const TensorView& value, bool additive, MemoryEstimate& memory);

/// Copies the traces that are gradients of inputs (q, k, v) or the incoming gradient (context, output).
void copy_gradient_traces(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                          const AttentionGradientBuffers& to);

}  // namespace attn::detail
