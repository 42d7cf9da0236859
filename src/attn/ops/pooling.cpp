#include "attn/ops/pooling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/kernels/kernels.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

bool keeps(const MaskView* padding, std::int64_t b, std::int64_t i) {
  if (padding == nullptr) return true;
  const std::size_t last = padding->shape.rank() - 1;
  return padding->attends((last == 1 ? static_cast<std::ptrdiff_t>(b) * padding->step(0) : 0) + static_cast<std::ptrdiff_t>(i) * padding->step(last));
}

void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const MaskView* padding, FullyMasked fully_masked,
          float* pooled, std::int64_t stride, std::int64_t first) {
  const FloatEnvironment environment;
  const auto width = static_cast<std::size_t>(E);
  for (std::int64_t b = 0; b < B; ++b, x += L * E, pooled += stride) {
    std::int64_t count = 0;
    double weights = 0;
    const auto add = [&](std::int64_t i) {
      const float* row = x + i * E;
      const auto weight = static_cast<float>(i + 1);
      weights += static_cast<double>(i + 1);
      ++count;
      if (pooling == Pooling::weightedmean)
        for (std::size_t e = 0; e < width; ++e) pooled[e] = count == 1 ? weight * row[e] : pooled[e] + weight * row[e];
      else if (count == 1 || pooling == Pooling::lasttoken)
        std::copy_n(row, width, pooled);
      else if (pooling == Pooling::max)
        for (std::size_t e = 0; e < width; ++e) pooled[e] = row[e] > pooled[e] || std::isnan(row[e]) ? row[e] : pooled[e];
      else
        kernels::best().add_row(pooled, row, pooled, width);
    };
    if (pooling == Pooling::cls) {
      if (first < L) add(first);
    } else {
      for (std::int64_t i = first; i < L; ++i)
        if (keeps(padding, b, i)) add(i);
    }
    if (count == 0 && fully_masked == FullyMasked::uniform)
      for (std::int64_t i = 0; i < L; ++i) add(i);
    if (count == 0) std::fill_n(pooled, width, fully_masked == FullyMasked::nan ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
    const auto divide = [&](float by) {
      for (std::size_t e = 0; e < width; ++e) pooled[e] /= by;
    };
    if (count == 0) continue;
    if (pooling == Pooling::mean) divide(static_cast<float>(count));
    if (pooling == Pooling::mean_sqrt_len) divide(std::sqrt(static_cast<float>(count)));
    if (pooling == Pooling::weightedmean) divide(static_cast<float>(weights));
  }
}

void clear_empty(const MaskView* padding, std::int64_t B, std::int64_t L, std::int64_t width, float* y, std::int64_t stride) {
  for (std::int64_t b = 0; b < B; ++b, y += stride) {
    bool any = false;
    for (std::int64_t i = 0; i < L && !any; ++i) any = keeps(padding, b, i);
    if (!any) std::fill_n(y, width, 0.0F);
  }
}

void normalize_rows(float* x, std::int64_t rows, std::int64_t width, bool everywhere) {
  const FloatEnvironment environment;
  const auto n = static_cast<std::size_t>(width);
  for (float* const end = x + rows * width; x != end; x += width) {
    const float length = std::max(std::sqrt(kernels::best(everywhere).dot(x, x, n)), 1e-12F);
    for (std::size_t i = 0; i < n; ++i) x[i] /= length;
  }
}

}  // namespace attn::detail
