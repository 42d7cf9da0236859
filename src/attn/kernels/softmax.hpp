#pragma once

#include <cstddef>
#include <limits>

#include "attn/kernels/exp.hpp"
#include "attn/kernels/simd.hpp"

// y[i] = exp(x[i] - m) / Σⱼ exp(x[j] - m), m = max x
//
// Lane l adds the terms l, l + lanes, l + 2 · lanes, ...: further terms that are zero, such as padded keys at the
// end, do not change a bit.
namespace attn::kernels {

template <class Arch>
void softmax_row(const float* x, float* y, std::size_t n) {
  using F = Batch<Arch>;
  constexpr std::size_t kStep = kLanes<Arch>;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::size_t whole = n - n % kStep;

  F most(-kInfinity);
  for (std::size_t i = 0; i < whole; i += kStep) most = larger<Arch>(F::load_unaligned(x + i), most);
  if (whole < n) most = larger<Arch>(load_partial<Arch>(x + whole, n - whole, -kInfinity), most);
  const F shift(max_of_lanes<Arch>(most));

  F sum(0.0F);
  for (std::size_t i = 0; i < whole; i += kStep) {
    const F term = exp<Arch>(F::load_unaligned(x + i) - shift);
    term.store_unaligned(y + i);
    sum += term;
  }
  if (whole < n) {
    const F term = exp<Arch>(load_partial<Arch>(x + whole, n - whole, -kInfinity) - shift);
    store_partial<Arch>(term, y + whole, n - whole);
    sum += term;
  }
  const F total(sum_of_lanes<Arch>(sum));
  map_row<Arch>(y, n, [&](const F& term) { return term / total; }, y);
}

}  // namespace attn::kernels
