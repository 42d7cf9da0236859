#pragma once

#include <cstdint>
#include <vector>

namespace attn::detail {

/// How a checkpoint changes the frequencies of RoPE for texts longer than those of its training.
struct RopeScaling {
  double factor = 1;  ///< divisor of frequencies
  /// If above 0 (Llama 3.1): only wavelengths above original_positions / low_frequency_factor are divided, those below original_positions /
  /// high_frequency_factor are unchanged, and those between are interpolated.
  std::int64_t original_positions = 0;
  double low_frequency_factor = 1, high_frequency_factor = 4;
  /// If above 0 (YaRN, Peng et al. 2023), the previous three do not apply: frequencies with fewer than `slow` turns in yarn_positions are divided,
  /// those with more than `fast` are unchanged, and those between are interpolated by their index.
  std::int64_t yarn_positions = 0;
  double fast = 32, slow = 1;
  bool whole = true;    ///< the ends of the range between are rounded to whole indices
  float magnitude = 1;  ///< factor of rotated queries and keys
};

/// Returns the D / 2 frequencies of RoPE with base `theta`, rounded to float32 after each step as in transformers.
std::vector<float> rope_frequencies(double theta, const RopeScaling& scaling, std::int64_t D);

}  // namespace attn::detail
