#pragma once

#include <cstddef>
#include <limits>

#include "attn/kernels/exp.hpp"
#include "attn/kernels/rows.hpp"
#include "attn/kernels/simd.hpp"

// Lane l adds the terms l, l + lanes, l + 2 · lanes, ..., so zeros at the end, such as padded keys, change no bit.
namespace attn::kernels {

template <class Arch>
float max_row(const float* x, std::size_t n) {
  using F = Batch<Arch>;
  constexpr std::size_t kStep = kLanes<Arch>;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  F most(-kInfinity);
  std::size_t i = 0;
  for (; i + kStep <= n; i += kStep) most = max_ignoring_nan<Arch>(F::load_unaligned(x + i), most);
  if (i < n) most = max_ignoring_nan<Arch>(load_partial<Arch>(x + i, n - i, -kInfinity), most);
  return max_of_lanes<Arch>(most);
}

template <class Arch>
float exp_block(const float* x, float shift, float* y, std::size_t n) {
  using F = Batch<Arch>;
  constexpr std::size_t kStep = kLanes<Arch>;
  const F m(shift);
  const auto term_at = [&](std::size_t i) {
    const F term = exp<Arch>(F::load_unaligned(x + i) - m);
    term.store_unaligned(y + i);
    return term;
  };
  F sum(0.0F);
  std::size_t i = 0;
  // In pairs: the constants of exp fill the registers in WebAssembly engines, so the sum is in memory.
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    const F first = term_at(i), second = term_at(i + kStep);
    sum = (sum + first) + second;
  }
  if (i + kStep <= n) {
    sum += term_at(i);
    i += kStep;
  }
  if (i < n) {
    const F term = exp<Arch>(load_partial<Arch>(x + i, n - i, -std::numeric_limits<float>::infinity()) - m);
    store_partial<Arch>(term, y + i, n - i);
    sum += term;
  }
  return sum_of_lanes<Arch>(sum);
}

template <class Arch>
float exp_row(const float* x, float shift, float* y, std::size_t n) {
  if constexpr (kAccumulators<Arch> > 1 || !std::is_same_v<Arch, typename BaseArch<Arch>::type>) {
    const Batch<Arch> m(shift);
    map_row_compactly<Arch>(x, y, n, [&](const Batch<Arch>& value) { return exp<Arch>(value - m); });
    return sum_row<Arch>(n, [](const Batch<Arch>& value) { return value; }, y);
  }
  return sum_of_blocks(n, [&](std::size_t first, std::size_t end) { return exp_block<Arch>(x + first, shift, y + first, end - first); });
}

template <class Arch>
void softmax_row(const float* x, float* y, std::size_t n) {
  scale_row<Arch>(y, 1 / exp_row<Arch>(x, max_row<Arch>(x, n), y, n), y, n);
}

}  // namespace attn::kernels
