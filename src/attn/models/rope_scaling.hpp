#pragma once

#include <cstdint>
#include <vector>

namespace attn::detail {

struct RopeScaling {
  double factor = 1;  ///< divisor of frequencies
  /// If above 0 (Llama 3.1): only wavelengths above original_positions / low_frequency_factor are divided, interpolated down to original_positions /
  /// high_frequency_factor.
  std::int64_t original_positions = 0;
  double low_frequency_factor = 1, high_frequency_factor = 4;
  /// If above 0 (YaRN, Peng et al. 2023), instead: frequencies with fewer than `slow` turns in yarn_positions are divided, interpolated by index up
  /// to `fast` turns.
  std::int64_t yarn_positions = 0;
  double fast = 32, slow = 1;
  bool whole = true;    ///< rounds the ends of the interpolation to whole indices
  float magnitude = 1;  ///< of rotated queries and keys
};

/// D / 2 frequencies, rounded to float32 after each step as in transformers.
std::vector<float> rope_frequencies(double theta, const RopeScaling& scaling, std::int64_t D);

}  // namespace attn::detail
