#include "attn/ops/pooling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/kernels/kernels.hpp"

namespace attn::detail {

bool keeps(const Mask* padding, std::int64_t b, std::int64_t L, std::int64_t i) {
  if (padding == nullptr) return true;
  const Shape shape = padding->shape();
  const auto at = static_cast<std::size_t>((shape.rank() == 2 && shape[0] > 1 ? b * L : 0) + i);
  if (padding->kind() == MaskKind::additive) return padding->added().data()[at] != -std::numeric_limits<float>::infinity();
  return (padding->flags().data()[at] != 0) == (padding->kind() == MaskKind::attend);
}

void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const Mask* padding, FullyMasked fully_masked,
          float* pooled) {
  const auto width = static_cast<std::size_t>(E);
  for (std::int64_t b = 0; b < B; ++b, x += L * E, pooled += E) {
    std::int64_t count = 0;
    const auto add = [&](std::int64_t i) {
      const float* row = x + i * E;
      if (count++ == 0)
        std::copy_n(row, width, pooled);
      else if (pooling == Pooling::mean)
        kernels::best().add_row(pooled, row, pooled, width);
      else
        for (std::size_t e = 0; e < width; ++e) pooled[e] = row[e] > pooled[e] || std::isnan(row[e]) ? row[e] : pooled[e];
    };
    if (pooling == Pooling::cls) {
      if (L > 0) add(0);
    } else {
      for (std::int64_t i = 0; i < L; ++i)
        if (keeps(padding, b, L, i)) add(i);
    }
    if (count == 0 && fully_masked == FullyMasked::uniform)
      for (std::int64_t i = 0; i < L; ++i) add(i);
    if (count == 0) std::fill_n(pooled, width, fully_masked == FullyMasked::nan ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
    if (count > 0 && pooling == Pooling::mean)
      for (std::size_t e = 0; e < width; ++e) pooled[e] /= static_cast<float>(count);
  }
}

void clear_empty(const Mask* padding, std::int64_t B, std::int64_t L, std::int64_t width, float* y) {
  for (std::int64_t b = 0; b < B; ++b, y += width) {
    bool any = false;
    for (std::int64_t i = 0; i < L && !any; ++i) any = keeps(padding, b, L, i);
    if (!any) std::fill_n(y, width, 0.0F);
  }
}

void normalize_rows(float* x, std::int64_t rows, std::int64_t width) {
  const auto n = static_cast<std::size_t>(width);
  for (float* const end = x + rows * width; x != end; x += width) {
    const float length = std::max(std::sqrt(kernels::best().dot(x, x, n)), 1e-12F);
    for (std::size_t i = 0; i < n; ++i) x[i] /= length;
  }
}

}  // namespace attn::detail
