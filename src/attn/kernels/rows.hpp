#pragma once

#include <cstddef>
#include <limits>

#include "attn/kernels/simd.hpp"

// Elementwise work on one row, and its sums.
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
void add_row(const float* x, const float* y, float* sum, std::size_t n) {
  map_row<Arch>(sum, n, [](const Batch<Arch>& left, const Batch<Arch>& right) { return left + right; }, x, y);
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
  // A finite number times 0 is ±0, another NaN, which stays in the sum.
  const Batch<Arch> factor(alpha);
  return sum_row<Arch>(n, [&](const Batch<Arch>& value) { return value * factor * Batch<Arch>(0.0F); }, x) == 0.0F;
}

}  // namespace attn::kernels
