#pragma once

#include <optional>

#include "attn/layers/encoder_forward.hpp"
#include "signature.hpp"

namespace attn::bindings {

std::optional<EncoderTraceOptions> trace_option(Arguments& arguments);

detail::EncoderBuffers allocate_results(const detail::EncoderPlan& plan, Result& result);
/// Adds the traces of a plan to the result and to the layers' buffers.
void add_traces(const detail::EncoderPlan& plan, detail::EncoderBuffers& buffers, Result& result);

}  // namespace attn::bindings
