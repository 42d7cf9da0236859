#pragma once

#include <cmath>
#include <cstddef>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

// n = (x - mean) · f, f = 1 / √(variance + eps), g = dy · weight:
// dx = f · (g - mean(g) - n · mean(g n)), dweight += dy · n, dbias += dy
template <class Arch>
void layer_norm_backward_row(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight, float* grad_bias,
                             std::size_t n) {
  using F = Batch<Arch>;
  const auto count = static_cast<float>(n);
  // The mean has two parts, as in layer_norm_row.
  const F high(sum_row<Arch>(n, [](const F& value) { return value; }, x) / count);
  const F low(sum_row<Arch>(n, [&](const F& value) { return value - high; }, x) / count);
  const auto deviation = [&](const F& value) { return (value - high) - low; };
  const auto square = [&](const F& value) { return deviation(value) * deviation(value); };
  const F factor(1 / std::sqrt(sum_row<Arch>(n, square, x) / count + eps));
  const auto normed = [&](const F& value) { return deviation(value) * factor; };

  const F mean(sum_row<Arch>(n, [](const F& dy, const F& w) { return dy * w; }, grad, weight) / count);
  const auto product = [&](const F& dy, const F& w, const F& value) { return (dy * w) * normed(value); };
  const F slope(sum_row<Arch>(n, product, grad, weight, x) / count);
  map_row<Arch>(grad_weight, n, [&](const F& sum, const F& dy, const F& value) { return sum + dy * normed(value); }, grad_weight, grad, x);
  map_row<Arch>(grad_bias, n, [](const F& sum, const F& dy) { return sum + dy; }, grad_bias, grad);
  const auto gradient = [&](const F& dy, const F& w, const F& value) { return ((dy * w - mean) - normed(value) * slope) * factor; };
  map_row<Arch>(grad_x, n, gradient, grad, weight, x);
}

// n = x · f, f = 1 / √(mean of x² + eps), g = dy · weight: dx = f · (g - n · mean(g n)), dweight += dy · n
template <class Arch>
void rms_norm_backward_row(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight, std::size_t n) {
  using F = Batch<Arch>;
  const auto count = static_cast<float>(n);
  const F factor(1 / std::sqrt(sum_row<Arch>(n, [](const F& value) { return value * value; }, x) / count + eps));
  const auto product = [&](const F& dy, const F& w, const F& value) { return (dy * w) * (value * factor); };
  const F slope(sum_row<Arch>(n, product, grad, weight, x) / count);
  map_row<Arch>(grad_weight, n, [&](const F& sum, const F& dy, const F& value) { return sum + dy * (value * factor); }, grad_weight, grad, x);
  const auto gradient = [&](const F& dy, const F& w, const F& value) { return (dy * w - (value * factor) * slope) * factor; };
  map_row<Arch>(grad_x, n, gradient, grad, weight, x);
}

}  // namespace attn::kernels
