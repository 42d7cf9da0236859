#include "attn/layers/rows_with_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attn::detail {
namespace {

template <class GradOf>
const float* select(const GradOf& grad_of, std::size_t n, const float* x, std::size_t width, std::size_t rows, Scratch& scratch) {
  float* const copy = scratch.take(rows, width);
  bool is_copied = false;
  for (std::size_t row = 0; row < rows && !counts(); ++row) {
    if (has_gradient(grad_of(row), n)) continue;
    const float* const values = x + row * width;
    if (std::all_of(values, values + width, [](float value) { return std::isfinite(value); })) continue;
    if (!std::exchange(is_copied, true)) std::copy_n(x, rows * width, copy);
    std::fill_n(copy + row * width, width, 0.0F);
  }
  return is_copied ? copy : x;
}

}  // namespace

bool has_gradient(const float* grad, std::size_t n) {
  return std::any_of(grad, grad + n, [](float value) { return value != 0; });
}

const float* rows_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t width, std::size_t rows, Scratch& scratch) {
  return select([&](std::size_t row) { return grad + row * n; }, n, x, width, rows, scratch);
}

const float* heads_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t B, std::size_t H, std::size_t L, std::size_t D,
                                 Scratch& scratch) {
  const auto grad_of = [&](std::size_t row) {
    const std::size_t b = row / (H * L), h = row / L % H, i = row % L;
    return grad + ((b * L + i) * H + h) * n;
  };
  return select(grad_of, n, x, D, B * H * L, scratch);
}

}  // namespace attn::detail
