#include "attn/models/rope_scaling.hpp"

#include <cstddef>
#include <numbers>

#include "attn/ops/elementary.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

float scaled(float frequency, const RopeScaling& scaling) {
  const auto factor = static_cast<float>(scaling.factor);
  if (scaling.original_positions == 0) return frequency / factor;
  const auto positions = static_cast<double>(scaling.original_positions);
  const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
  if (wavelength < static_cast<float>(positions / scaling.high_frequency_factor)) return frequency;
  if (wavelength > static_cast<float>(positions / scaling.low_frequency_factor)) return frequency / factor;
  const auto low = static_cast<float>(scaling.low_frequency_factor);
  const float share =
      (static_cast<float>(positions) / wavelength - low) / static_cast<float>(scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - share) * frequency / factor + share * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(double theta, const RopeScaling& scaling, std::int64_t D) {
  const FloatEnvironment environment;
  std::vector<float> frequencies(static_cast<std::size_t>(D / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = scaled(1 / static_cast<float>(pow_of(theta, 2 * static_cast<double>(i) / static_cast<double>(D))), scaling);
  return frequencies;
}

}  // namespace attn::detail
