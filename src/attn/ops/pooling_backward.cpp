#include "attn/ops/pooling_backward.hpp"

#include "attn/tensor/dry_run.hpp"
#include "attn/tensor/float_environment.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attn::detail {

void pool_backward(const float* grad, std::int64_t stride, const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling,
                   const MaskView* padding, FullyMasked fully_masked, float* grad_x, std::int64_t first) {
  if (counts()) return;
  const FloatEnvironment environment;
  const auto width = static_cast<std::size_t>(E);
  std::vector<std::int64_t> pooled;
  pooled.reserve(static_cast<std::size_t>(L));
  for (std::int64_t b = 0; b < B; ++b, grad += stride, x += L * E, grad_x += L * E) {
    std::fill_n(grad_x, L * E, 0.0F);
    pooled.clear();
    if (pooling == Pooling::cls) {
      if (first < L) pooled.push_back(first);
    } else {
      for (std::int64_t i = first; i < L; ++i)
        if (keeps(padding, b, i)) pooled.push_back(i);
    }
    if (pooled.empty() && fully_masked == FullyMasked::uniform)
      for (std::int64_t i = 0; i < L; ++i) pooled.push_back(i);
    if (pooled.empty()) continue;
    if (pooling == Pooling::max) {
      for (std::size_t e = 0; e < width; ++e) {
        const auto value = [&](std::int64_t i) { return x[static_cast<std::size_t>(i * E) + e]; };
        std::int64_t largest = pooled.front();
        for (const std::int64_t i : pooled)
          if (value(i) > value(largest) || (std::isnan(value(i)) && !std::isnan(value(largest)))) largest = i;
        grad_x[static_cast<std::size_t>(largest * E) + e] = grad[e];
      }
      continue;
    }
    if (pooling == Pooling::lasttoken) pooled.front() = pooled.back(), pooled.resize(1);
    double weights = 0;
    for (const std::int64_t i : pooled) weights += static_cast<double>(i + 1);
    const auto count = static_cast<float>(pooled.size());
    const float by = pooling == Pooling::mean            ? count
                     : pooling == Pooling::mean_sqrt_len ? std::sqrt(count)
                     : pooling == Pooling::weightedmean  ? static_cast<float>(weights)
                                                         : 1.0F;
    for (const std::int64_t i : pooled) {
      const float weight = pooling == Pooling::weightedmean ? static_cast<float>(i + 1) : 1.0F;
      for (std::size_t e = 0; e < width; ++e) grad_x[static_cast<std::size_t>(i * E) + e] = grad[e] / by * weight;
    }
  }
}

}  // namespace attn::detail
