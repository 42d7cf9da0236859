#include "attn/ops/pooling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/kernels/kernels.hpp"

namespace attn::detail {
namespace {

/// The positions of sequence b that are no padding.
std::vector<std::size_t> kept_positions(std::int64_t b, std::int64_t L, const std::optional<Mask>& padding) {
  std::vector<std::size_t> kept;
  const Shape shape = padding ? padding->shape() : Shape{};
  const std::size_t first = padding && shape.rank() == 2 && shape[0] > 1 ? static_cast<std::size_t>(b * L) : 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(L); ++i) {
    bool keep = true;
    if (padding && padding->kind() == MaskKind::additive)
      keep = padding->added().data()[first + i] != -std::numeric_limits<float>::infinity();
    else if (padding)
      keep = (padding->flags().data()[first + i] != 0) == (padding->kind() == MaskKind::attend);
    if (keep) kept.push_back(i);
  }
  return kept;
}

}  // namespace

void pool(const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling, const std::optional<Mask>& padding,
          FullyMasked fully_masked, float* pooled) {
  const auto width = static_cast<std::size_t>(E);
  for (std::int64_t b = 0; b < B; ++b, x += L * E, pooled += E) {
    std::vector<std::size_t> kept = pooling == Pooling::cls && L > 0 ? std::vector<std::size_t>{0} : kept_positions(b, L, padding);
    if (kept.empty() && fully_masked == FullyMasked::uniform) kept = kept_positions(b, L, std::nullopt);
    if (kept.empty()) {
      std::fill_n(pooled, width, fully_masked == FullyMasked::nan ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
      continue;
    }
    std::copy_n(x + kept[0] * width, width, pooled);
    for (std::size_t n = 1; n < kept.size(); ++n) {
      const float* row = x + kept[n] * width;
      if (pooling == Pooling::mean) kernels::best().add_row(pooled, row, pooled, width);
      if (pooling == Pooling::max)
        for (std::size_t e = 0; e < width; ++e) pooled[e] = row[e] > pooled[e] || std::isnan(row[e]) ? row[e] : pooled[e];
    }
    if (pooling == Pooling::mean)
      for (std::size_t e = 0; e < width; ++e) pooled[e] /= static_cast<float>(kept.size());
  }
}

}  // namespace attn::detail
