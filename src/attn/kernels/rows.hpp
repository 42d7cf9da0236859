#pragma once

#include <cstddef>
#include <limits>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

template <class Arch>
void mask_row(const float* x, const float* bias, float* y, std::size_t n) {
  using F = Batch<Arch>;
  const F blocked(-std::numeric_limits<float>::infinity());
  map_row<Arch>(y, n, [&](const F& score, const F& added) { return xsimd::select(added == blocked, blocked, score + added); }, x, bias);
}

template <class Arch>
void scale_row(const float* x, float alpha, float* y, std::size_t n) {
  const Batch<Arch> factor(alpha);
  map_row<Arch>(y, n, [&](const Batch<Arch>& value) { return value * factor; }, x);
}

template <class Arch>
void divide_row(const float* x, float divisor, float* y, std::size_t n) {
  const Batch<Arch> divisors(divisor);
  map_row<Arch>(y, n, [&](const Batch<Arch>& value) { return divide<Arch>(value, divisors); }, x);
}

template <class Arch>
void maximum_row(const float* x, const float* y, float* maximum, std::size_t n) {
  const auto larger_or_nan = [](const Batch<Arch>& left, const Batch<Arch>& right) {
    return xsimd::select((right > left) | (right != right), right, left);
  };
  map_row<Arch>(maximum, n, larger_or_nan, x, y);
}

template <class Arch>
void rotate_row(float* x, const float* cos, const float* sin, float direction, std::size_t n) {
  using F = Batch<Arch>;
  const F sign(direction);
  const auto rotate = [&](F& a, F& b, const F& c, const F& s) {
    const F first = a * c - b * (s * sign);
    b = b * c + a * (s * sign);
    a = first;
  };
  std::size_t i = 0;
  for (; i + kLanes<Arch> <= n; i += kLanes<Arch>) {
    F a = F::load_unaligned(x + i), b = F::load_unaligned(x + n + i);
    rotate(a, b, F::load_unaligned(cos + i), F::load_unaligned(sin + i));
    a.store_unaligned(x + i);
    b.store_unaligned(x + n + i);
  }
  if (i == n) return;
  const std::size_t rest = n - i;
  F a = load_tail<Arch>(x + i, rest), b = load_tail<Arch>(x + n + i, rest);
  rotate(a, b, load_tail<Arch>(cos + i, rest), load_tail<Arch>(sin + i, rest));
  store_tail<Arch>(a, x + i, rest);
  store_tail<Arch>(b, x + n + i, rest);
}

template <class Arch>
void add_row(const float* x, const float* y, float* sum, std::size_t n) {
  map_row<Arch>(sum, n, [](const Batch<Arch>& left, const Batch<Arch>& right) { return left + right; }, x, y);
}

template <class Arch>
void add_scaled_row(const float* x, float alpha, float* sum, std::size_t n) {
  const Batch<Arch> factor(alpha);
  map_row<Arch>(sum, n, [&](const Batch<Arch>& value, const Batch<Arch>& before) { return before + factor * value; }, x, sum);
}

template <class Arch>
void multiply_row(const float* x, const float* y, float* product, std::size_t n) {
  map_row<Arch>(product, n, [](const Batch<Arch>& left, const Batch<Arch>& right) { return left * right; }, x, y);
}

template <class Arch>
float dot(const float* x, const float* y, std::size_t n) {
  return sum_row<Arch>(n, [](const Batch<Arch>& left, const Batch<Arch>& right) { return left * right; }, x, y);
}

template <class Arch>
bool all_finite(const float* x, float alpha, std::size_t n) {
  // x · 0 is NaN for infinity and NaN, and the sum passes NaN on.
  const Batch<Arch> factor(alpha);
  return sum_row<Arch>(n, [&](const Batch<Arch>& value) { return value * factor * Batch<Arch>(0.0F); }, x) == 0.0F;
}

}  // namespace attn::kernels
