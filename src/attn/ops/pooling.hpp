#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "attn/ops/fully_masked.hpp"
#include "attn/ops/mask_view.hpp"

namespace attn {

/// What is made of the positions of a sequence.
enum class Pooling : std::uint8_t {
  none,  ///< nothing: they stay
  mean,  ///< of the positions that are no padding
  cls,   ///< the first position
  max,   ///< element by element, of the positions that are no padding
  // Of text models alone (sentence-transformers' Pooling).
  lasttoken,      ///< the last position that is no padding
  weightedmean,   ///< the mean weighted by the place, counted from 1 (Muennighoff 2022)
  mean_sqrt_len,  ///< the sum of the positions that are no padding, divided by the root of their number
};

inline constexpr std::array<std::string_view, 7> kPoolingNames{"none", "mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len"};
/// Those that a classifier has.
inline constexpr std::span<const std::string_view> kClassifierPoolingNames = std::span(kPoolingNames).first<4>();

namespace detail {

/// Whether position i of sequence b counts. padding as in pool.
bool keeps(const MaskView* padding, std::int64_t b, std::int64_t i);

/// x (B,L,E) -> pooled (B,E), rows of it `stride` apart, for all but none; positions before `first` are left out as padding is. padding (B,L),
/// (1,L) or (L), or null, has been checked. A sequence of which nothing is left gives what a fully masked query does: 0, NaN, or the pool of all
/// positions.
void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const MaskView* padding, FullyMasked fully_masked,
          float* pooled, std::int64_t stride, std::int64_t first = 0);

/// Rows of y (B,width), `stride` apart, become 0 where nothing of the sequence counts: position 0 of one without any token is what the batch pads it
/// with.
void clear_empty(const MaskView* padding, std::int64_t B, std::int64_t L, std::int64_t width, float* y, std::int64_t stride);

/// Each row of x (rows,width) divided by its length, or by 1e-12 where it is shorter         (torch.nn.functional.normalize)
void normalize_rows(float* x, std::int64_t rows, std::int64_t width, bool everywhere = false);

}  // namespace detail
}  // namespace attn
