#pragma once

#include <optional>

#include "attn/layers/encoder_forward.hpp"
#include "signature.hpp"

namespace attn::bindings {

std::optional<EncoderTraceOptions> trace_option(Arguments& arguments);

detail::EncoderBuffers allocate_results(const detail::EncoderPlan& plan, Result& result);
template <class Plan, class Place>
void add_traces(const Plan& plan, Result& result, Place place) {
  result.set_traced(plan.has_trace);
  for (const std::int64_t layer : plan.traced)
    for (std::size_t i = 0; i < kTraceNames.size(); ++i)
      if (plan.names.has(static_cast<TraceName>(i)))
        place(static_cast<std::size_t>(layer), i) =
            result.add(Field::trace, plan.trace_shapes[i], static_cast<std::int32_t>(layer), static_cast<std::int32_t>(i));
}

}  // namespace attn::bindings
