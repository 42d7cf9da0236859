#pragma once

#include <cstdint>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

/// The two parts of exp(x) = 2ⁿ (1 + p), n the integer next to x / ln 2.
template <class Arch>
struct ExpParts {
  Batch<Arch> p;  ///< exp(r) - 1, |r| ≤ ln 2 / 2
  Ints<Arch> n;   ///< in its low bits; shifted by 23 they are where a float has its exponent
};

/// Of |x| < 128.
template <class Arch>
inline ExpParts<Arch> exp_parts(const Batch<Arch>& x) {
  using F = Batch<Arch>;
  // Adding 1.5 · 2²³ rounds to an integer and leaves it in the low bits: the same bits on every architecture, which
  // conversions of NaN are not.
  const F magic(12582912.0F);
  const F shifted = multiply_add<Arch>(x, F(1.44269504F), magic);
  const F n = shifted - magic;
  // ln 2 in two parts: the first has 9 bits of zeros at its end, so n · hi is exact.
  const F r = multiply_add<Arch>(n, F(2.12194440e-4F), multiply_add<Arch>(n, F(-0.693359375F), x));

  // exp(r) = 1 + r + r² q(r): q is the minimax polynomial of degree 4 for the relative error of exp, 3.1e-9; in pairs,
  // since a long chain keeps other arguments waiting.
  const F square = r * r;
  const F low = multiply_add<Arch>(F(0x1.555492p-3F), r, F(0x1.fffffcp-2F));
  const F high = multiply_add<Arch>(F(0x1.123a20p-7F), r, F(0x1.5558f2p-5F));
  const F q = multiply_add<Arch>(multiply_add<Arch>(F(0x1.6a23cep-10F), square, high), square, low);
  return {multiply_add<Arch>(q, square, r), as_ints<Arch>(shifted)};
}

/// exp(x) for x ≤ 0.
/// Error < 1 ulp (float64 as judge); results below 2⁻¹²⁶, the least normal number, are 0. exp(-infinity) = 0, NaN stays NaN.
template <class Arch>
inline Batch<Arch> exp(const Batch<Arch>& argument) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  const F least(-87.33654F);  // ln 2⁻¹²⁶
  const auto [p, n] = exp_parts<Arch>(larger<Arch>(least, argument));
  const I exponent = (n + I(127)) << 23;
  return (p + F(1.0F)) * xsimd::select(argument < least, F(0.0F), as_floats<Arch>(exponent));
}

}  // namespace attn::kernels
