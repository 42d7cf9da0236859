#include "attn/ops/rotary_table.hpp"

#include "attn/ops/elementary.hpp"

namespace attn::detail {

RotaryTable::RotaryTable(double theta, std::int64_t positions, std::int64_t D) : pairs_(static_cast<std::size_t>(D / 2)) {
  const auto rows = static_cast<std::size_t>(positions);
  std::vector<float> frequency(pairs_);
  for (std::size_t i = 0; i < pairs_; ++i) frequency[i] = 1 / static_cast<float>(pow_of(theta, 2 * static_cast<double>(i) / static_cast<double>(D)));
  cos_.resize(rows * pairs_);
  sin_.resize(rows * pairs_);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < pairs_; ++i) {
      const float angle = static_cast<float>(row) * frequency[i];
      const SinCos pair = sin_cos_of(static_cast<double>(angle));
      cos_[row * pairs_ + i] = static_cast<float>(pair.cos);
      sin_[row * pairs_ + i] = static_cast<float>(pair.sin);
    }
}

void RotaryTable::rotate(float* x, std::size_t heads, std::size_t position) const {
  const float *cos = cos_.data() + position * pairs_, *sin = sin_.data() + position * pairs_;
  for (std::size_t head = 0; head < heads; ++head, x += 2 * pairs_)
    for (std::size_t i = 0; i < pairs_; ++i) {
      const float a = x[i], b = x[i + pairs_];
      x[i] = a * cos[i] - b * sin[i];
      x[i + pairs_] = b * cos[i] + a * sin[i];
    }
}

}  // namespace attn::detail
