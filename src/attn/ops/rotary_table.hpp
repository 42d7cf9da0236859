#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attn::detail {

/// Rotary positions of a checkpoint (RoFormer, Su et al. 2021), column i of a head paired with i + D/2. Angles are rounded to float32 as
/// transformers rounds them, since the weights were trained with those; apply_rotary has exact ones.
class RotaryTable {
 public:
  /// For positions from 0 to positions - 1 and heads of width D, which is even.
  RotaryTable(double theta, std::int64_t positions, std::int64_t D);

  /// Turns the heads (heads,D) of one position.
  void rotate(float* x, std::size_t heads, std::size_t position) const;

 private:
  std::size_t pairs_;
  std::vector<float> cos_, sin_;  // (positions, D/2)
};

}  // namespace attn::detail
