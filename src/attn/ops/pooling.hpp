#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "attn/ops/attention.hpp"
#include "attn/ops/mask.hpp"

namespace attn {

/// What is made of the positions of a sequence.
enum class Pooling : std::uint8_t {
  none,  ///< nothing: they stay
  mean,  ///< of the positions that are no padding
  cls,   ///< the first position
  max,   ///< element by element, of the positions that are no padding
};

inline constexpr std::array<std::string_view, 4> kPoolingNames{"none", "mean", "cls", "max"};

namespace detail {

/// x (B,L,E) -> pooled (B,E), for mean, cls and max. padding (B,L), (1,L) or (L), or null, has been checked. A sequence that is all padding gives
/// what a fully masked query does: 0, NaN, or the pool of all positions.
void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const Mask* padding, FullyMasked fully_masked,
          float* pooled);

}  // namespace detail
}  // namespace attn
