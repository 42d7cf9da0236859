#pragma once

#include <cstdint>

#include "attn/ops/attention.hpp"
#include "tensors.hpp"

namespace attn::bindings {

/// api.d.ts's AttentionOptions as Embind carries them. Numbers of kinds are those of the C++ enums.
struct AttentionOptions {
  Address mask = 0;  ///< descriptor, or 0
  std::int32_t maskKind = 0;
  bool maskIsFloat = false;
  Address keyPaddingMask = 0;
  std::int32_t keyPaddingMaskKind = 0;
  bool keyPaddingMaskIsFloat = false;
  bool isCausal = false;
  bool hasScale = false;
  float scale = 0;
  bool needWeights = false;
  bool averageWeights = false;
  bool enableGqa = false;
  std::int32_t fullyMasked = 0;
  std::uint32_t trace = 0;  ///< bit i: trace name i
};

attn::AttentionOptions convert(const AttentionOptions& options);

/// Buffers of a new Result for everything that the plan says.
detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, Result& result);

}  // namespace attn::bindings
