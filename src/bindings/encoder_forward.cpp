#include "encoder_forward.hpp"

#include <utility>
#include <vector>

namespace attn::bindings {

std::optional<EncoderTraceOptions> trace_option(Arguments& arguments) {
  EncoderTraceOptions trace;
  const bool given = arguments.group("trace", [&] {
    arguments.option("layers", trace.layers);
    arguments.option("names", trace.names, kTraceNames);
  });
  return given ? std::optional(std::move(trace)) : std::nullopt;
}

detail::EncoderBuffers allocate_results(const detail::EncoderPlan& plan, Result& result) {
  const auto layers = static_cast<std::int32_t>(plan.layers);
  detail::EncoderBuffers buffers{result.add(plan.output), {}, std::vector<detail::LayerBuffers>(static_cast<std::size_t>(plan.layers))};
  if (plan.has_attentions)
    for (std::int32_t i = 0; i < layers; ++i)
      buffers.layers[static_cast<std::size_t>(i)].attentions = result.add(Field::attentions, plan.attention.weights, i);
  if (plan.has_hidden_states)
    for (std::int32_t i = 0; i <= layers; ++i) buffers.hidden_states.push_back(result.add(Field::hidden_states, plan.output, i));
  add_traces(plan, buffers, result);
  return buffers;
}

void add_traces(const detail::EncoderPlan& plan, detail::EncoderBuffers& buffers, Result& result) {
  result.set_traced(plan.has_trace);
  for (const std::int64_t layer : plan.traced)
    for (std::size_t i = 0; i < kTraceNames.size(); ++i)
      if (plan.names.has(static_cast<TraceName>(i)))
        buffers.layers[static_cast<std::size_t>(layer)].trace[i] =
            result.add(Field::trace, plan.trace_shapes[i], static_cast<std::int32_t>(layer), static_cast<std::int32_t>(i));
}

}  // namespace attn::bindings
