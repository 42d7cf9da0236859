#pragma once

#include <cstddef>
#include <limits>

#include "attn/kernels/simd.hpp"

// Elementwise work on one row.
namespace attn::kernels {

template <class Arch>
void mask_row(const float* x, const float* bias, float* y, std::size_t n) {
  using F = Batch<Arch>;
  const F blocked(-std::numeric_limits<float>::infinity());
  const auto masked = [&](const F& score, const F& added) { return xsimd::select(added == blocked, blocked, score + added); };
  std::size_t i = 0;
  for (; i + kLanes<Arch> <= n; i += kLanes<Arch>) masked(F::load_unaligned(x + i), F::load_unaligned(bias + i)).store_unaligned(y + i);
  if (i < n) store_partial<Arch>(masked(load_partial<Arch>(x + i, n - i, 0), load_partial<Arch>(bias + i, n - i, 0)), y + i, n - i);
}

template <class Arch>
void scale_row(const float* x, float alpha, float* y, std::size_t n) {
  const Batch<Arch> factor(alpha);
  map_row<Arch>(x, y, n, [&](const Batch<Arch>& value) { return value * factor; });
}

template <class Arch>
bool all_finite(const float* x, std::size_t n) {
  using F = Batch<Arch>;
  // x · 0 is ±0 for finite x and NaN otherwise; NaN stays in the sum.
  F sum(0.0F);
  std::size_t i = 0;
  for (; i + kLanes<Arch> <= n; i += kLanes<Arch>) sum += F::load_unaligned(x + i) * F(0.0F);
  if (i < n) sum += load_partial<Arch>(x + i, n - i, 0) * F(0.0F);
  return sum_of_lanes<Arch>(sum) == 0.0F;
}

}  // namespace attn::kernels
