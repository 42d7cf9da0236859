#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/memory/scratch.hpp"
#include "attn/ops/positions.hpp"

// RoPE inside a layer (RoFormer, Su et al. 2021).
namespace attn::detail {

/// Pairs column i of a head with i + D/2. Angles are rounded to float32 as in transformers, because weights were trained with those; apply_rotary
/// uses exact angles.
class RotaryTable {
 public:
  /// Of the `width` columns of a head the first D are rotated, by D / 2 frequencies, and multiplied by `magnitude`.
  RotaryTable(std::span<const float> frequencies, std::int64_t positions, std::int64_t width, float magnitude = 1);

  /// Rotates (heads,width) of one position in place; direction -1 inverts.
  void rotate(float* x, std::size_t heads, std::size_t position, float direction = 1) const;
  std::size_t width() const { return width_; }

 private:
  std::size_t pairs_, width_;
  std::vector<float> cos_, sin_;  // (positions, D/2)
};

/// By a table, with the angles of apply_rotary, or none.
class Rotary {
 public:
  Rotary() = default;
  explicit Rotary(std::shared_ptr<const RotaryTable> table) : table_(std::move(table)) {}
  Rotary(std::string_view op, const RotaryOptions& options, std::int64_t D);

  explicit operator bool() const { return table_ != nullptr || !frequency_.empty(); }

  /// (B·L, heads·D)
  struct Heads {
    float* x;
    std::size_t heads;
  };
  /// Row i of each sequence of `length` rows has position first + i.
  void rotate(std::span<const Heads> parts, std::size_t rows, std::size_t length, std::int64_t first, Scratch& scratch) const;
  /// Inverts the rotation, for gradients.
  void rotate_back(const Heads& part, std::size_t rows, std::size_t length, std::int64_t first, Scratch& scratch) const;

 private:
  std::shared_ptr<const RotaryTable> table_;
  RotaryOptions options_;
  std::vector<double> frequency_;  // of each pair
};

}  // namespace attn::detail
