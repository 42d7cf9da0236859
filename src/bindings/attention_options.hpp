#pragma once

#include <cstdint>

#include "attn/ops/attention.hpp"
#include "tensors.hpp"

namespace attn::bindings {

/// api.d.ts's AttentionOptions as JavaScript writes them into the heap, four bytes each. Embind's value_object would do, but
/// it leaks its C++ side whenever the function that takes it throws. Numbers of kinds are those of the C++ enums.
struct AttentionOptions {
  std::uint32_t mask = 0;  ///< descriptor, or 0
  std::int32_t mask_kind = 0;
  std::int32_t mask_is_float = 0;
  std::uint32_t key_padding_mask = 0;
  std::int32_t key_padding_mask_kind = 0;
  std::int32_t key_padding_mask_is_float = 0;
  std::int32_t is_causal = 0;
  std::int32_t has_scale = 0;
  float scale = 0;
  std::int32_t need_weights = 0;
  std::int32_t average_weights = 0;
  std::int32_t enable_gqa = 0;
  std::int32_t fully_masked = 0;
  std::uint32_t trace = 0;  ///< bit i: trace name i
};

/// The fields in their order, in JavaScript's spelling: it checks once that it writes the same.
inline constexpr const char* kAttentionOptionFields =
    "mask,maskKind,maskIsFloat,keyPaddingMask,keyPaddingMaskKind,keyPaddingMaskIsFloat,isCausal,hasScale,scale,needWeights,averageWeights,enableGqa,"
    "fullyMasked,trace";

attn::AttentionOptions read_attention_options(Address options);

/// Buffers of a new Result for everything that the plan says.
detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, Result& result);

}  // namespace attn::bindings
