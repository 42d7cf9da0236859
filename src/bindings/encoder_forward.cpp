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
  add_traces(plan, result, [&](std::size_t layer, std::size_t name) -> float*& { return buffers.layers[layer].trace[name]; });
  return buffers;
}

}  // namespace attn::bindings
