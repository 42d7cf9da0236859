#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "attn/ops/attention.hpp"
#include "attn/ops/positions.hpp"
#include "signature.hpp"

namespace attn::bindings {

inline constexpr std::array<std::string_view, 3> kFullyMaskedNames{"zero", "nan", "uniform"};

/// Options of an attention call, and whether a trace was asked for: an empty one is one too.
struct AttentionCall {
  AttentionOptions options;
  bool traced = false;
};

/// The argument `options` of every attention function.
AttentionCall read_attention_options(Arguments& arguments);

/// The member `rotary` of a layer's options.
void rotary_option(Arguments& arguments, std::optional<RotaryOptions>& rotary);

/// Buffers in the result for everything that the plan says.
detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, bool traced, Result& result);

}  // namespace attn::bindings
