#include "attn/ops/init.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "attn/kernels/philox.hpp"
#include "attn/tensor/error.hpp"

namespace attn {
namespace {

/// Natural logarithm of a normal number, by additions, multiplications and divisions alone: C libraries differ in the
/// last bit of theirs. x = m · 2ᵉ with m in [√½, √2); ln m = 2 artanh s, s = (m - 1) / (m + 1), |s| < 0.172.
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

}  // namespace

void check_init_options(std::string_view op, const InitOptions& options) {
  if (!(options.std >= 0) || !std::isfinite(options.std))
    fail(ErrorCode::config, op, "std", {"a finite number, 0 or above"}, {std::to_string(options.std)});
}

std::uint32_t Random::next() {
  if (drawn_ % 4 == 0) {
    const std::uint64_t block = drawn_ / 4;
    const auto words = kernels::philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), parameter_, 0},
                                       {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    for (std::size_t i = 0; i < 4; ++i) block_[i] = words[i];
  }
  return block_[drawn_++ % 4];
}

/// Middle of one of 2²⁴ equal parts of (-1, 1): never -1, 0 or 1.
double Random::next_signed_unit() { return (static_cast<double>(next() >> 8) + 0.5) * 0x1p-23 - 1; }

void Random::uniform(float* values, std::size_t count, double bound) {
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(next_signed_unit() * bound);
}

void Random::normal(float* values, std::size_t count, double std) {
  // Marsaglia's polar method: a point in the unit disc gives two independent normal numbers.
  for (std::size_t i = 0; i < count;) {
    const double x = next_signed_unit(), y = next_signed_unit(), square = x * x + y * y;
    if (square >= 1) continue;
    const double factor = std * std::sqrt(-2 * log_of(square) / square);
    values[i++] = static_cast<float>(x * factor);
    if (i < count) values[i++] = static_cast<float>(y * factor);
  }
}

void Random::weight(float* values, std::int64_t fan_out, std::int64_t fan_in, const InitOptions& options) {
  const auto count = static_cast<std::size_t>(fan_out * fan_in);
  const auto in = static_cast<double>(fan_in), both = static_cast<double>(fan_in + fan_out);
  switch (options.scheme) {
    case InitScheme::xavier_uniform:
      return uniform(values, count, std::sqrt(6 / both));
    case InitScheme::xavier_normal:
      return normal(values, count, std::sqrt(2 / both));
    case InitScheme::kaiming_uniform:
      return uniform(values, count, std::sqrt(6 / in));
    case InitScheme::kaiming_normal:
      return normal(values, count, std::sqrt(2 / in));
    case InitScheme::normal:
      return normal(values, count, options.std);
    case InitScheme::torch:
      return uniform(values, count, 1 / std::sqrt(in));
  }
}

}  // namespace attn
