#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "attn/ops/fully_masked.hpp"
#include "attn/ops/mask_view.hpp"

namespace attn {

/// How the positions of a sequence are pooled.
enum class Pooling : std::uint8_t {
  none,  ///< no pooling
  mean,  ///< mean of the non-padding positions
  cls,   ///< the first position
  max,   ///< element-wise maximum of the non-padding positions
  // Text models only (sentence-transformers' Pooling):
  lasttoken,      ///< the last non-padding position
  weightedmean,   ///< mean weighted by the position, counted from 1 (Muennighoff 2022)
  mean_sqrt_len,  ///< sum of the non-padding positions, divided by the square root of their number
};

inline constexpr std::array<std::string_view, 7> kPoolingNames{"none", "mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len"};
/// Poolings that a classifier supports.
inline constexpr std::span<const std::string_view> kClassifierPoolingNames = std::span(kPoolingNames).first<4>();

namespace detail {

/// Whether position i of sequence b is not padding. padding as in pool().
bool keeps(const MaskView* padding, std::int64_t b, std::int64_t i);

/// Pools x (B,L,E) into pooled (B,E), whose rows are `stride` apart, for every pooling except none. Positions before `first` are skipped like
/// padding. padding is (B,L), (1,L), (L) or null, and already checked. A sequence with no position left gives the result of a fully masked query:
/// 0, NaN, or the pool of all positions.
void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const MaskView* padding, FullyMasked fully_masked,
          float* pooled, std::int64_t stride, std::int64_t first = 0);

/// Sets rows of y (B,width), `stride` apart, to 0 if the sequence is all padding, because position 0 of such a sequence is only the batch's padding.
void clear_empty(const MaskView* padding, std::int64_t B, std::int64_t L, std::int64_t width, float* y, std::int64_t stride);

/// Divides each row of x (rows,width) by its L2 norm, or by 1e-12 if that is smaller         (torch.nn.functional.normalize)
void normalize_rows(float* x, std::int64_t rows, std::int64_t width, bool reproducible = false);

}  // namespace detail
}  // namespace attn
