#pragma once

#include <cstddef>

#include "attn/kernels/activation_name.hpp"
#include "attn/kernels/exp.hpp"
#include "attn/kernels/simd.hpp"

namespace attn::kernels {

/// 1 / (1 + exp(-x)) from exp(-|x|), which cannot overflow.
template <class Arch>
inline Batch<Arch> sigmoid(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  const F z = exp<Arch>(-xsimd::abs(x));
  return divide<Arch>(xsimd::select(x < F(0.0F), z, F(1.0F)), F(1.0F) + z);
}

/// Σ c[k] · xᵏ
template <class Arch, std::size_t N>
inline Batch<Arch> polynomial(const float (&c)[N], const Batch<Arch>& x) {
  Batch<Arch> sum(c[N - 1]);
  for (std::size_t k = N - 1; k-- > 0;) sum = multiply_add<Arch>(sum, x, Batch<Arch>(c[k]));
  return sum;
}

/// Error < 1.4 ulp. No second division or full exponential: additive attention evaluates it per term.
template <class Arch>
inline Batch<Arch> tanh(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  F size = xsimd::abs(x);
  size = xsimd::select(size > F(9.02F), F(9.02F), size);  // tanh rounds to 1 from here on

  // 1 - 2 / (1 + exp(2x)), with the fraction expanded by 2⁻ⁿ. Here it is below 1/2, and so is its error.
  const auto [p, n] = exp_parts<Arch>(size + size);
  const F scale = as_floats<Arch>((I(127) - n) << 23);
  const F far = F(1.0F) - divide<Arch>(scale + scale, p + (F(1.0F) + scale));

  // x + x³ P(x²), where P is minimax for the relative error up to 0.55: 3.7e-8.
  static constexpr float kP[] = {-0x1.555452p-2F, 0x1.10cefcp-3F, -0x1.af7d38p-5F, 0x1.0d5184p-6F};
  const F square = size * size;
  const F near = multiply_add<Arch>(size * square, polynomial<Arch>(kP, square), size);
  return xsimd::select(size < F(0.55F), near, far) | xsimd::bitofsign(x);
}

/// Φ(-t) = exp(-t²/2) · u P(u), u = 1 / (1 + 0.34375 t), t ≥ 0, with P minimax for the relative error, 2.6e-8, up to
/// the t at which exp returns 0. The error of x · Φ(x) is below 1e-6, and its left tail has no step.
template <class Arch>
inline Batch<Arch> normal_cdf(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  static constexpr float kP[] = {0x1.18d2a8p-3F, 0x1.19a724p-3F, 0x1.deb298p-4F, 0x1.cb317p-4F,  -0x1.368c6cp-5F,
                                 0x1.828cbp-3F,  -0x1.14279p-2F, 0x1.2476ep-3F,  -0x1.c3e906p-6F};
  const F t = xsimd::abs(x);
  const F u = divide<Arch>(F(1.0F), multiply_add<Arch>(F(0.34375F), t, F(1.0F)));
  const F tail = exp<Arch>(F(-0.5F) * t * t) * (u * polynomial<Arch>(kP, u));
  return xsimd::select(x < F(0.0F), tail, F(1.0F) - tail);
}

template <class Arch>
void activation_row(Activation name, const float* x, float* y, std::size_t n) {
  using F = Batch<Arch>;
  switch (name) {
    case Activation::relu:
      // NaN and -0 pass through, as in torch.
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
    case Activation::mish:
      // tanh(log(1 + eˣ)) is z(z + 2) / (z(z + 2) + 2) for x < 0, else (1 + 2z) / (1 + 2z + 2z²), z = exp(-|x|): no
      // cancellation.
      return map_row_compactly<Arch>(x, y, n, [](const F& value) {
        const F z = exp<Arch>(-xsimd::abs(value)), low = z * (z + F(2.0F)), high = F(1.0F) + F(2.0F) * z;
        return value * xsimd::select(value < F(0.0F), divide<Arch>(low, low + F(2.0F)), divide<Arch>(high, high + F(2.0F) * (z * z)));
      });
    case Activation::quick_gelu:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return value * sigmoid<Arch>(F(1.702F) * value); });
    case Activation::identity:
      return map_row_compactly<Arch>(x, y, n, [](const F& value) { return value; });
  }
}

}  // namespace attn::kernels
