#include "attn/ops/elementary.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace attn::detail {
namespace {

/// signᵏ / n!, n = first + k · step: series of exp, sine and cosine.
template <std::size_t N>
constexpr std::array<double, N> reciprocal_factorials(int first, int step, double sign) {
  std::array<double, N> coefficients{};
  double factorial = 1, sign_now = 1;
  int n = 0;
  for (std::size_t k = 0; k < N; ++k, sign_now *= sign) {
    const int power = first + static_cast<int>(k) * step;
    while (n < power) factorial *= ++n;  // exact up to 18!
    coefficients[k] = sign_now / factorial;
  }
  return coefficients;
}

template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double sum = 0;
  for (std::size_t k = N; k-- > 0;) sum = sum * x + coefficients[k];
  return sum;
}

/// exp(r) · 2ⁿ, |r| ≤ 0.35. The first omitted term is r¹⁴ / 14! < 5e-18.
double scaled_exp(double r, double n) {
  static constexpr auto kSeries = reciprocal_factorials<12>(2, 1, 1);  // from r² / 2
  const double p = 1 + (r + r * r * polynomial(kSeries, r));
  // Two factors, so that a denormal result is rounded once.
  const auto exponent = static_cast<std::int64_t>(n), half = exponent / 2;
  const auto power = [](std::int64_t e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); };
  return p * power(half) * power(exponent - half);
}

}  // namespace

// x = m · 2ᵉ with m in [√½, √2); ln m = 2 artanh s, s = (m - 1) / (m + 1), |s| < 0.172.
double log_of(double x) {
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto shifted = static_cast<std::int64_t>(bits - kSqrtHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(shifted) << 52));
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int power = 21; power >= 1; power -= 2) sum = sum * s2 + 1.0 / power;
  return static_cast<double>(shifted) * 0.69314718055994530942 + 2 * s * sum;
}

double exp_of(double x) {
  if (x != x) return x;
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -746) return 0;
  const double n = std::floor(x * 1.4426950408889634 + 0.5);
  // The first part of ln 2 ends in 21 zero bits, so n · part is exact.
  return scaled_exp((x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33, n);
}

double exp2_of(double x) {
  if (x != x) return x;
  if (x > 1025) return std::numeric_limits<double>::infinity();
  if (x < -1076) return 0;
  const double n = std::floor(x + 0.5);
  return scaled_exp((x - n) * 0.69314718055994530942, n);
}

double pow_of(double base, double exponent) { return exp_of(exponent * log_of(base)); }

SinCos sin_cos_of(double x) {
  // π/2 in parts of 22 bits and a remainder. With n split too, all products except the last are exact.
  static constexpr std::array<double, 5> kHalfPi{0x1.921fbp+0, 0x1.5110bp-22, 0x1.184698p-44, 0x1.31988p-69, 0x1.1701b839a252p-88};
  static constexpr auto kSin = reciprocal_factorials<7>(3, 2, -1);
  static constexpr auto kCos = reciprocal_factorials<8>(2, 2, -1);
  if (!(std::abs(x) <= 0x1p54)) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  double r = x;
  std::int64_t quarters = 0;
  // Above 2⁵⁰ the number of quarter turns is rounded: the remainder needs a second iteration.
  do {
    const double n = std::floor(r * 0.63661977236758134308 + 0.5);
    const double high = std::trunc(n * 0x1p-27) * 0x1p27, low = n - high;
    for (const double part : kHalfPi) r = (r - high * part) - low * part;
    quarters += static_cast<std::int64_t>(n);
  } while (std::abs(r) > 0.8);
  const double r2 = r * r;
  const double sin = r - r * r2 * polynomial(kSin, r2), cos = 1 - r2 * polynomial(kCos, r2);
  switch (quarters & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace attn::detail
