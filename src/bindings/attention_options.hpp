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

struct AttentionCall {
  AttentionOptions options;
  bool traced = false;
};

AttentionCall read_attention_options(Arguments& arguments);

detail::AdditiveParams read_additive_params(Arguments& arguments);

template <class T>
void softcap_option(Arguments& arguments, T& softcap) {
  double given = 0;
  if (!arguments.option("softcap", given)) return;
  // A tiny softcap must not round to 0, which means none.
  const auto rounded = static_cast<float>(given);
  softcap = rounded == 0 && given != 0 ? std::numeric_limits<float>::denorm_min() : rounded;
}

detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, bool traced, Result& result);

}  // namespace attn::bindings
