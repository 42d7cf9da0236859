#pragma once

#include <cstddef>

#include "attn/kernels/activation_name.hpp"
#include "attn/kernels/exp.hpp"
#include "attn/kernels/simd.hpp"

namespace attn::kernels {

/// 1 / (1 + exp(-x)), through exp(-|x|), which does not overflow.
template <class Arch>
inline Batch<Arch> sigmoid(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  const F z = exp<Arch>(-xsimd::abs(x));
  return xsimd::select(x < F(0.0F), z, F(1.0F)) / (F(1.0F) + z);
}

/// Σ c[k] · xᵏ
template <class Arch, std::size_t N>
inline Batch<Arch> polynomial(const float (&c)[N], const Batch<Arch>& x) {
  Batch<Arch> sum(c[N - 1]);
  for (std::size_t k = N - 1; k-- > 0;) sum = multiply_add<Arch>(sum, x, Batch<Arch>(c[k]));
  return sum;
}

/// x · P(x²) / Q(x²) below 9.02, ±1 above: minimax for the relative error, 5.0e-8; in float32 below 7 ulp. One division
/// and no exponential, because additive attention takes one tanh a term.
template <class Arch>
inline Batch<Arch> tanh(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  static constexpr float kP[] = {1.0F, 0x1.121624p-3F, 0x1.ca6becp-9F, 0x1.59e2e2p-16F, 0x1.c9d232p-27F};
  static constexpr float kQ[] = {1.0F, 0x1.de6066p-2F, 0x1.a81cc2p-6F, 0x1.58bd04p-12F, 0x1.a147c6p-21F};
  F size = xsimd::abs(x);
  size = xsimd::select(size > F(9.02F), F(9.02F), size);
  const F square = size * size;
  const F y = size * polynomial<Arch>(kP, square) / polynomial<Arch>(kQ, square);
  return xsimd::select(y > F(1.0F), F(1.0F), y) | xsimd::bitofsign(x);
}

/// Φ(x), the distribution function of N(0, 1). Φ(-t) = exp(-t²/2) · u P(u), u = 1 / (1 + 0.34375 t), t ≥ 0: minimax for
/// the relative error up to where exp gives 0, 2.6e-8. It is small where it is subtracted, so x · Φ(x) errs by less than
/// 1e-6 everywhere, and its left tail goes to zero without a step.
template <class Arch>
inline Batch<Arch> normal_cdf(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  static constexpr float kP[] = {0x1.18d2a8p-3F, 0x1.19a724p-3F, 0x1.deb298p-4F, 0x1.cb317p-4F,  -0x1.368c6cp-5F,
                                 0x1.828cbp-3F,  -0x1.14279p-2F, 0x1.2476ep-3F,  -0x1.c3e906p-6F};
  const F t = xsimd::abs(x);
  const F u = F(1.0F) / multiply_add<Arch>(F(0.34375F), t, F(1.0F));
  const F tail = exp<Arch>(F(-0.5F) * t * t) * (u * polynomial<Arch>(kP, u));
  return xsimd::select(x < F(0.0F), tail, F(1.0F) - tail);
}

template <class Arch>
void activation_row(Activation name, const float* x, float* y, std::size_t n) {
  using F = Batch<Arch>;
  switch (name) {
    case Activation::relu:
      // NaN and -0 pass, as in torch.
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return xsimd::select(value < F(0.0F), F(0.0F), value); });
    case Activation::gelu:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return value * normal_cdf<Arch>(value); });
    case Activation::gelu_tanh:
      // (1 + tanh u) / 2 = sigmoid(2u)
      return map_row_compactly<Arch>(
          x, y, n, [](const F& value) { return value * sigmoid<Arch>(value * (F(1.5957691F) + F(0.07135482F) * (value * value))); });
    case Activation::silu:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return value * sigmoid<Arch>(value); });
    case Activation::tanh:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return tanh<Arch>(value); });
    case Activation::sigmoid:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return sigmoid<Arch>(value); });
    case Activation::identity:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return value; });
  }
}

}  // namespace attn::kernels
