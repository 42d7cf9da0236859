#include "attn/ops/attention_backward.hpp"

#include <algorithm>

#include "attn/ops/attention_backward_core.hpp"
#include "attn/ops/attention_backward_inputs.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

CheckedInputs check_attention_gradients(std::string_view op, const TensorView& grad, const TensorView& query, const TensorView& key,
                                        const TensorView& value, const AttentionOptions& options, bool own_widths) {
  if (options.past)
    fail(ErrorCode::unsupported, op, "past", {"no past"}, {"given"},
         "Put its keys and values in front of key and value, and pass its length as query_offset");
  CheckedInputs checked = check_attention_inputs(op, query, key, value, options, own_widths);
  if (grad.shape != checked.output) fail(ErrorCode::shape, op, "grad", {checked.output}, {grad.shape});
  checked.spec.need_weights = checked.spec.average_weights = checked.spec.output_present = false;
  return checked;
}

void copy_gradient_traces(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                          const AttentionGradientBuffers& to) {
  if (counts()) return;
  const auto copy = [&](TraceName name, const TensorView& from) {
    float* out = to.trace[static_cast<std::size_t>(name)];
    if (out == nullptr) return;
    const Rows rows(from);
    for (std::size_t row = 0; row < rows.count(); ++row) out = std::copy_n(rows[row], rows.width(), out);
  };
  copy(TraceName::q, {to.grad_query, query.shape});
  copy(TraceName::k, {to.grad_key, key.shape});
  copy(TraceName::v, {to.grad_value, value.shape});
  copy(TraceName::context, grad);
  copy(TraceName::output, grad);
}

AttentionGradientBuffers counted_gradients(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value) {
  AttentionGradientBuffers to{counted(query.shape, "grad_query"), counted(key.shape, "grad_key"), counted(value.shape, "grad_value")};
  for (std::size_t i = 0; i < plan.trace_shapes.size(); ++i)
    if (plan.spec.trace.has(static_cast<TraceName>(i))) to.trace[i] = counted(plan.trace_shapes[i], kTraceNames[i]);
  return to;
}

AttentionPlan plan_scaled_dot_product_attention_backward(const TensorView& grad, const TensorView& query, const TensorView& key,
                                                         const TensorView& value, const AttentionOptions& options) {
  constexpr std::string_view kOp = "scaled_dot_product_attention_backward";
  const CheckedInputs checked = check_attention_gradients(kOp, grad, query, key, value, options, false);
  AttentionSpec spec = checked.spec;
  spec.scale = attention_scale(kOp, options.scale, spec.head_dim);
  AttentionPlan plan(kOp, spec, checked.sizes, checked.output);
  check_memory(kOp,
               [&] { scaled_dot_product_attention_backward(plan, grad, query, key, value, options, counted_gradients(plan, query, key, value)); });
  return plan;
}

void scaled_dot_product_attention_backward(const AttentionPlan& plan, const TensorView& grad, const TensorView& query, const TensorView& key,
                                           const TensorView& value, const AttentionOptions& options, const AttentionGradientBuffers& to) {
  const AttentionSpec& spec = plan.spec;
  const AttentionSizes& sizes = plan.sizes;
  const std::int64_t H = spec.num_heads, Hkv = spec.num_key_value_heads;
  Scratch scratch;
  attention_backward_core(spec, sizes,
                          {.query = heads_of(query),
                           .key = heads_of(key),
                           .value = heads_of(value),
                           .grad = heads_of(grad),
                           .dropout = dropout_of_call("scaled_dot_product_attention_backward", options.dropout, options.seed)},
                          {.query = heads_of(to.grad_query, H, sizes.L, spec.head_dim),
                           .key = heads_of(to.grad_key, Hkv, sizes.S, spec.head_dim),
                           .value = heads_of(to.grad_value, Hkv, sizes.S, spec.value_head_dim),
                           .trace = to.trace},
                          scratch);
  copy_gradient_traces(grad, query, key, value, to);
}

}  // namespace attn::detail
