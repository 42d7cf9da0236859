#pragma once

#include <cstddef>

#include "attn/kernels/activation.hpp"
#include "attn/kernels/simd.hpp"

namespace attn::kernels {

/// Beyond ±most the derivative equals its limit at infinity; infinity times an exponential of 0 would be NaN.
template <class Arch>
inline Batch<Arch> clamp(const Batch<Arch>& x, float most) {
  using F = Batch<Arch>;
  return xsimd::select(x > F(most), F(most), xsimd::select(x < F(-most), F(-most), x));
}

/// σ(v) · (1 - σ(v)) = z / (1 + z)², z = exp(-|v|)
template <class Arch>
inline Batch<Arch> sigmoid_slope(const Batch<Arch>& v) {
  using F = Batch<Arch>;
  const F z = exp<Arch>(-xsimd::abs(v)), above = F(1.0F) + z;
  return divide<Arch>(z, above * above);
}

/// Derivative of x · σ(v(x)): σ(v) + x · v' · σ(v) (1 - σ(v))
template <class Arch>
inline Batch<Arch> gated_slope(const Batch<Arch>& x, const Batch<Arch>& v, const Batch<Arch>& slope_of_v) {
  return sigmoid<Arch>(v) + x * slope_of_v * sigmoid_slope<Arch>(v);
}

template <class Arch>
inline Batch<Arch> activation_slope(Activation name, const Batch<Arch>& given) {
  using F = Batch<Arch>;
  const F one(1.0F);
  switch (name) {
    case Activation::relu:
      // 0 at 0 and 1 at NaN, as in torch.
      return xsimd::select(given <= F(0.0F), F(0.0F), one);
    case Activation::gelu: {
      // Φ(x) + x φ(x), φ(x) = exp(-x² / 2) / √(2π)
      const F x = clamp<Arch>(given, 16.0F);
      return normal_cdf<Arch>(x) + x * (F(0.39894228F) * exp<Arch>(F(-0.5F) * x * x));
    }
    case Activation::gelu_tanh: {
      const F x = clamp<Arch>(given, 16.0F), square = x * x;
      return gated_slope<Arch>(x, x * (F(1.5957691F) + F(0.07135482F) * square), F(1.5957691F) + F(0.21406445F) * square);
    }
    case Activation::silu: {
      const F x = clamp<Arch>(given, 128.0F);
      return gated_slope<Arch>(x, x, one);
    }
    case Activation::tanh: {
      const F t = tanh<Arch>(given);
      return (one - t) * (one + t);
    }
    case Activation::sigmoid:
      return sigmoid_slope<Arch>(given);
    case Activation::mish: {
      // tanh(s) + x (1 - tanh²(s)) σ(x), s = log(1 + eˣ), in terms of z = exp(-|x|)
      const F x = clamp<Arch>(given, 128.0F), z = exp<Arch>(-xsimd::abs(x)), low = z * (z + F(2.0F)), high = one + F(2.0F) * z;
      const F below = low + F(2.0F), above = high + F(2.0F) * (z * z);
      const auto negative = x < F(0.0F);
      const F denominator = xsimd::select(negative, below, above), numerator = F(4.0F) * z * (one + z);
      const F value = divide<Arch>(xsimd::select(negative, low, high), denominator);
      return value + x * divide<Arch>(xsimd::select(negative, numerator, numerator * z), denominator * denominator);
    }
    case Activation::quick_gelu: {
      const F x = clamp<Arch>(given, 64.0F);
      return gated_slope<Arch>(x, F(1.702F) * x, F(1.702F));
    }
    case Activation::identity:
      break;
  }
  return one;
}

template <class Arch, Activation Name>
void slope_row(const float* grad, const float* x, float* grad_x, std::size_t n) {
  map_row<Arch>(grad_x, n, [](const Batch<Arch>& dy, const Batch<Arch>& value) { return dy * activation_slope<Arch>(Name, value); }, grad, x);
}

template <class Arch>
void activation_backward_row(Activation name, const float* grad, const float* x, float* grad_x, std::size_t n) {
  switch (name) {
    case Activation::relu:
      return slope_row<Arch, Activation::relu>(grad, x, grad_x, n);
    case Activation::gelu:
      return slope_row<Arch, Activation::gelu>(grad, x, grad_x, n);
    case Activation::gelu_tanh:
      return slope_row<Arch, Activation::gelu_tanh>(grad, x, grad_x, n);
    case Activation::silu:
      return slope_row<Arch, Activation::silu>(grad, x, grad_x, n);
    case Activation::tanh:
      return slope_row<Arch, Activation::tanh>(grad, x, grad_x, n);
    case Activation::sigmoid:
      return slope_row<Arch, Activation::sigmoid>(grad, x, grad_x, n);
    case Activation::identity:
      return slope_row<Arch, Activation::identity>(grad, x, grad_x, n);
    case Activation::mish:
      return slope_row<Arch, Activation::mish>(grad, x, grad_x, n);
    case Activation::quick_gelu:
      return slope_row<Arch, Activation::quick_gelu>(grad, x, grad_x, n);
  }
}

}  // namespace attn::kernels
