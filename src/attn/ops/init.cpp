#include "attn/ops/init.hpp"

#include <cmath>
#include <string>

#include "attn/kernels/philox.hpp"
#include "attn/ops/elementary.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {

void check_init_options(std::string_view op, const InitOptions& options) {
  // Ten standard deviations must fit into a float.
  if (!(options.std >= 0 && options.std <= 1e37)) detail::fail(ErrorCode::config, op, "std", {"a number from 0 to 1e37"}, {options.std});
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

/// Midpoint of one of 2²⁴ equal parts of (-1, 1): never -1, 0 or 1.
double Random::next_signed_unit() { return (static_cast<double>(next() >> 8) + 0.5) * 0x1p-23 - 1; }

void Random::uniform(float* values, std::size_t count, double bound) {
  const detail::FloatEnvironment environment;
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(next_signed_unit() * bound);
}

void Random::normal(float* values, std::size_t count, double std) {
  const detail::FloatEnvironment environment;
  // Marsaglia's polar method: a point in the unit disc gives two normal numbers.
  for (std::size_t i = 0; i < count;) {
    const double x = next_signed_unit(), y = next_signed_unit(), square = x * x + y * y;
    if (square >= 1) continue;
    const double factor = std * std::sqrt(-2 * detail::log_of(square) / square);
    values[i++] = static_cast<float>(x * factor);
    if (i < count) values[i++] = static_cast<float>(y * factor);
  }
}

void Random::weight(float* values, std::int64_t fan_out, std::int64_t fan_in, const InitOptions& options) {
  draw(values, static_cast<std::size_t>(fan_out * fan_in), fan_out, fan_in, options);
}

void Random::row(float* values, std::int64_t width, const InitOptions& options) {
  draw(values, static_cast<std::size_t>(width), width, width, options);
}

void Random::draw(float* values, std::size_t count, std::int64_t fan_out, std::int64_t fan_in, const InitOptions& options) {
  const detail::FloatEnvironment environment;
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
