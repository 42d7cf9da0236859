#pragma once

#include <optional>

#include "attn/layers/encoder_forward.hpp"
#include "signature.hpp"

namespace attn::bindings {

/// The member `trace`.
std::optional<EncoderTraceOptions> trace_option(Arguments& arguments);

/// Buffers in the result for everything that the plan says.
detail::EncoderBuffers allocate_results(const detail::EncoderPlan& plan, Result& result);

}  // namespace attn::bindings
