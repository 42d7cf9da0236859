#include "attn/ops/pooling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/kernels/kernels.hpp"
#include "attn/tensor/dry_run.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

bool keeps(const MaskView* padding, std::int64_t b, std::int64_t i) {
  if (padding == nullptr) return true;
  const std::size_t last = padding->shape.rank() - 1;
  return padding->attends((last == 1 ? static_cast<std::ptrdiff_t>(b) * padding->step(0) : 0) + static_cast<std::ptrdiff_t>(i) * padding->step(last));
}

void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const MaskView* padding, FullyMasked fully_masked,
          float* pooled, std::int64_t stride, std::int64_t first) {
  if (counts()) return;
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best();
  const auto width = static_cast<std::size_t>(E);
  for (std::int64_t b = 0; b < B; ++b, x += L * E, pooled += stride) {
    std::int64_t count = 0;
    double weights = 0;
    const auto add = [&](std::int64_t i) {
      const float* row = x + i * E;
      const auto weight = static_cast<float>(i + 1);
      weights += static_cast<double>(i + 1);
      ++count;
      if (pooling == Pooling::weightedmean && count == 1)
        kernel.scale_row(row, weight, pooled, width);
      else if (pooling == Pooling::weightedmean)
        kernel.add_scaled_row(row, weight, pooled, width);
      else if (count == 1 || pooling == Pooling::lasttoken)
        std::copy_n(row, width, pooled);
      else
        (pooling == Pooling::max ? kernel.maximum_row : kernel.add_row)(pooled, row, pooled, width);
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
    const auto divide = [&](float by) { kernel.divide_row(pooled, by, pooled, width); };
    if (count == 0) continue;
    if (pooling == Pooling::mean) divide(static_cast<float>(count));
    if (pooling == Pooling::mean_sqrt_len) divide(std::sqrt(static_cast<float>(count)));
    if (pooling == Pooling::weightedmean) divide(static_cast<float>(weights));
  }
}

void clear_empty(const MaskView* padding, std::int64_t B, std::int64_t L, std::int64_t width, float* y, std::int64_t stride) {
  for (std::int64_t b = 0; b < B && !counts(); ++b, y += stride) {
    bool any = false;
    for (std::int64_t i = 0; i < L && !any; ++i) any = keeps(padding, b, i);
    if (!any) std::fill_n(y, width, 0.0F);
  }
}

void normalize_rows(float* x, std::int64_t rows, std::int64_t width, bool reproducible) {
  if (counts()) return;
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best(reproducible);
  const auto n = static_cast<std::size_t>(width);
  for (float* const end = x + rows * width; x != end; x += width) kernel.divide_row(x, std::max(std::sqrt(kernel.dot(x, x, n)), 1e-12F), x, n);
}

}  // namespace attn::detail
