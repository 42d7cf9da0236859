#pragma once

#include <cstddef>
#include <limits>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

template <class Arch>
void softmax_backward_row(const float* grad, const float* y, float* grad_x, std::size_t n) {
  using F = Batch<Arch>;
  const F mean(sum_row<Arch>(n, [](const F& dy, const F& value) { return dy * value; }, grad, y));
  map_row<Arch>(grad_x, n, [&](const F& dy, const F& value) { return value * (dy - mean); }, grad, y);
}

template <class Arch>
void zero_blocked_row(const float* bias, float* x, std::size_t n) {
  using F = Batch<Arch>;
  const F blocked(-std::numeric_limits<float>::infinity());
  map_row<Arch>(x, n, [&](const F& added, const F& value) { return xsimd::select(added == blocked, F(0.0F), value); }, bias, x);
}

// t = tanh(x / c) = y / c. The product (1 - t) (1 + t) keeps its precision if t is close to 1.
template <class Arch>
void softcap_backward_row(const float* y, float softcap, float* grad, std::size_t n) {
  using F = Batch<Arch>;
  const F one(1.0F), inverse(1 / softcap);
  const auto gradient = [&](const F& capped, const F& dy) {
    const F t = capped * inverse;
    return dy * ((one - t) * (one + t));
  };
  map_row<Arch>(grad, n, gradient, y, grad);
}

}  // namespace attn::kernels
