#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "attn/ops/attention.hpp"
#include "attn/ops/positions.hpp"
#include "attn/ops/score_functions.hpp"
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

/// The argument `params` of additive attention.
detail::AdditiveParams read_additive_params(Arguments& arguments);

/// The member `softcap` of a call's or a layer's options.
template <class T>
void softcap_option(Arguments& arguments, T& softcap) {
  double given = 0;
  if (!arguments.option("softcap", given)) return;
  // One that is 0 as a float is not the 0 that says none.
  const auto rounded = static_cast<float>(given);
  softcap = rounded == 0 && given != 0 ? std::numeric_limits<float>::denorm_min() : rounded;
}

/// Buffers in the result for everything that the plan says.
detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, bool traced, Result& result);

}  // namespace attn::bindings
