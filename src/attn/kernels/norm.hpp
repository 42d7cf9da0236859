#pragma once

#include <cmath>
#include <cstddef>

#include "attn/kernels/rows.hpp"
#include "attn/kernels/simd.hpp"

namespace attn::kernels {

// The mean is Σ x / n in float32 plus the mean of the differences from it: for values around 10⁴ the first part alone
// is wrong in the fourth digit of a deviation of 1.
template <class Arch>
void layer_norm_row(const float* x, const float* weight, const float* bias, float eps, float* y, std::size_t n) {
  using F = Batch<Arch>;
  const auto count = static_cast<float>(n);
  const F high(sum_row<Arch>(n, [](const F& value) { return value; }, x) / count);
  const F low(sum_row<Arch>(n, [&](const F& value) { return value - high; }, x) / count);
  const auto deviation = [&](const F& value) { return (value - high) - low; };
  const auto square = [&](const F& value) { return deviation(value) * deviation(value); };
  const F factor(1 / std::sqrt(sum_row<Arch>(n, square, x) / count + eps));
  const auto normed = [&](const F& value) { return deviation(value) * factor; };

  if (weight != nullptr && bias != nullptr)
    map_row<Arch>(y, n, [&](const F& value, const F& w, const F& b) { return normed(value) * w + b; }, x, weight, bias);
  else
    map_row<Arch>(y, n, normed, x);
  if (weight != nullptr && bias == nullptr) multiply_row<Arch>(y, weight, y, n);
  if (weight == nullptr && bias != nullptr) add_row<Arch>(y, bias, y, n);
}

template <class Arch>
void rms_norm_row(const float* x, const float* weight, float eps, float* y, std::size_t n) {
  using F = Batch<Arch>;
  const float mean = sum_row<Arch>(n, [](const F& value) { return value * value; }, x) / static_cast<float>(n);
  const F factor(1 / std::sqrt(mean + eps));
  if (weight != nullptr)
    map_row<Arch>(y, n, [&](const F& value, const F& w) { return value * factor * w; }, x, weight);
  else
    map_row<Arch>(y, n, [&](const F& value) { return value * factor; }, x);
}

}  // namespace attn::kernels
