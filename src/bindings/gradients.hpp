#pragma once

#include "attn/ops/attention_backward.hpp"
#include "signature.hpp"

namespace attn::bindings {

template <std::size_t Count>
void allocate_traces(const detail::AttentionPlan& plan, bool traced, Result& result, std::array<float*, Count>& to) {
  result.set_traced(traced);
  for (std::size_t i = 0; i < plan.trace_shapes.size(); ++i)
    if (plan.spec.trace.has(static_cast<TraceName>(i))) to[i] = result.add(Field::trace, plan.trace_shapes[i], -1, static_cast<std::int32_t>(i));
}

inline detail::AttentionGradientBuffers allocate_attention_gradients(const detail::AttentionPlan& plan, const TensorView& query,
                                                                     const TensorView& key, const TensorView& value, bool traced, Result& result) {
  detail::AttentionGradientBuffers to;
  to.grad_query = result.add("gradQuery", query.shape);
  to.grad_key = result.add("gradKey", key.shape);
  to.grad_value = result.add("gradValue", value.shape);
  allocate_traces(plan, traced, result, to.trace);
  return to;
}

}  // namespace attn::bindings
