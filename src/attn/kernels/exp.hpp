#pragma once

#include <cstdint>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

/// exp(x) = 2ⁿ (1 + p), n nearest to x / ln 2
template <class Arch>
struct ExpParts {
  Batch<Arch> p;  ///< exp(r) - 1, |r| ≤ ln 2 / 2
  Ints<Arch> n;   ///< in the low bits; << 23 moves it to a float's exponent
};

/// |x| < 128
template <class Arch>
inline ExpParts<Arch> exp_parts(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  // Adding 1.5 · 2²³ rounds to an integer in the low bits: unlike a conversion, with the same bits for NaN everywhere.
  const F magic(12582912.0F);
  const F shifted = multiply_add<Arch>(x, F(1.44269504F), magic);
  const F n = shifted - magic;
  // The high part of ln 2 has only 9 significant bits, so its product with n is exact.
  const F r = multiply_add<Arch>(n, F(2.12194440e-4F), multiply_add<Arch>(n, F(-0.693359375F), x));

  // exp(r) = 1 + r + r² q(r), q minimax for the relative error of exp, 3.1e-9; in pairs of terms for a shorter
  // dependency chain.
  const F square = r * r;
  const F low = multiply_add<Arch>(F(0x1.555492p-3F), r, F(0x1.fffffcp-2F));
  const F high = multiply_add<Arch>(F(0x1.123a20p-7F), r, F(0x1.5558f2p-5F));
  const F q = multiply_add<Arch>(multiply_add<Arch>(F(0x1.6a23cep-10F), square, high), square, low);
  return {multiply_add<Arch>(q, square, r), as_ints<Arch>(shifted)};
}

/// x ≤ 0; error < 1 ulp against float64. Results below 2⁻¹²⁶, the smallest normal number, are 0; NaN stays.
template <class Arch>
inline Batch<Arch> exp(const Batch<Arch>& argument) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  const F least(-87.33654F);  // ln 2⁻¹²⁶
  const auto [p, n] = exp_parts<Arch>(max_ignoring_nan<Arch>(least, argument));
  const I exponent = (n + I(127)) << 23;
  return (p + F(1.0F)) * xsimd::select(argument < least, F(0.0F), as_floats<Arch>(exponent));
}

}  // namespace attn::kernels
