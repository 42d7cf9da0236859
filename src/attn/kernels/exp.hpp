#pragma once

#include <cstdint>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

/// exp(x) = 2ⁿ · exp(r), n the integer next to x / ln 2, |r| ≤ ln 2 / 2.
/// Error < 1 ulp (float64 as judge, also where the result is denormal); exp(-infinity) = 0, NaN stays NaN.
template <class Arch>
inline Batch<Arch> exp(const Batch<Arch>& argument) {
  using F = Batch<Arch>;
  using I = xsimd::batch<std::int32_t, Arch>;
  // Past these the result is 0 or infinity all the same; comparisons leave NaN alone.
  F x = xsimd::select(argument < F(-105.0F), F(-105.0F), argument);
  x = xsimd::select(x > F(89.0F), F(89.0F), x);

  // Adding 1.5 · 2²³ rounds to an integer and leaves it in the low bits: the same bits on every architecture, which
  // conversions of NaN are not.
  const F magic(12582912.0F);
  const F shifted = x * F(1.44269504F) + magic;
  const F n = shifted - magic;
  // ln 2 in two parts: the first has 9 bits of zeros at its end, so n · hi is exact.
  const F r = (x - n * F(0.693359375F)) - n * F(-2.12194440e-4F);

  // exp(r) = 1 + r + r² q(r): q is the minimax polynomial of degree 4 for the relative error of exp, 3.1e-9.
  F q(0x1.6a23cep-10F);
  q = q * r + F(0x1.123a20p-7F);
  q = q * r + F(0x1.5558f2p-5F);
  q = q * r + F(0x1.555492p-3F);
  q = q * r + F(0x1.fffffcp-2F);
  const F p = (r * r * q + r) + F(1.0F);

  // 2ⁿ as a product of two powers, so that the last multiplication rounds a denormal result correctly.
  const I exponent = xsimd::bitwise_cast<std::int32_t>(shifted) - xsimd::bitwise_cast<std::int32_t>(magic);
  const I half = exponent >> 1;
  const F scale1 = xsimd::bitwise_cast<float>((half + I(127)) << 23);
  const F scale2 = xsimd::bitwise_cast<float>((exponent - half + I(127)) << 23);
  return p * scale1 * scale2;
}

}  // namespace attn::kernels
