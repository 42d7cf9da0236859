#include "attn/models/rope_scaling.hpp"

#include <algorithm>
#include <cmath>
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

/// Shares of the D / 2 frequencies that are divided.
std::vector<float> yarn_shares(double theta, const RopeScaling& scaling, std::int64_t D) {
  const auto index = [&](double turns) {
    return static_cast<double>(D) * log_of(static_cast<double>(scaling.yarn_positions) / (turns * 2 * std::numbers::pi)) / (2 * log_of(theta));
  };
  double first = index(scaling.fast), last = index(scaling.slow);
  if (scaling.whole) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(D - 1));
  if (first == last) last += 0.001;
  std::vector<float> shares(static_cast<std::size_t>(D / 2));
  for (std::size_t i = 0; i < shares.size(); ++i)
    shares[i] = std::clamp((static_cast<float>(i) - static_cast<float>(first)) / static_cast<float>(last - first), 0.0F, 1.0F);
  return shares;
}

}  // namespace

std::vector<float> rope_frequencies(double theta, const RopeScaling& scaling, std::int64_t D) {
  const FloatEnvironment environment;
  std::vector<float> frequencies(static_cast<std::size_t>(D / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = 1 / static_cast<float>(pow_of(theta, 2 * static_cast<double>(i) / static_cast<double>(D)));
  if (scaling.yarn_positions == 0) {
    for (float& frequency : frequencies) frequency = scaled(frequency, scaling);
  } else {
    const std::vector<float> shares = yarn_shares(theta, scaling, D);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const float divided = 1 / (static_cast<float>(scaling.factor) * (1 / frequencies[i])), kept = 1 - shares[i];
      frequencies[i] = divided * (1 - kept) + frequencies[i] * kept;
    }
  }
  return frequencies;
}

}  // namespace attn::detail
