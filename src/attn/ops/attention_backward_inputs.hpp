#pragma once

#include <string_view>

#include "attn/ops/attention_backward.hpp"
#include "attn/ops/attention_inputs.hpp"

namespace attn::detail {

/// Checks grad as well. Clears need_weights, average_weights and output_present. Throws UNSUPPORTED for a past.
CheckedInputs check_attention_gradients(std::string_view op, const TensorView& grad, const TensorView& query, const TensorView& key,
                                        const TensorView& value, const AttentionOptions& options, bool own_widths);

/// counted() results of a backward, for its dry run.
AttentionGradientBuffers counted_gradients(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value);

/// Traces of q, k, v, context and output.
void copy_gradient_traces(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                          const AttentionGradientBuffers& to);

}  // namespace attn::detail
