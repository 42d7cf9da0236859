#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/ops/positions.hpp"
#include "attn/store/scratch.hpp"

// Rotary positions inside a layer (RoFormer, Su et al. 2021). Internal: layers use it.
namespace attn::detail {

/// Those of a checkpoint, column i of a head paired with i + D/2. Angles are rounded to float32 as transformers rounds them, since the
/// weights were trained with those; apply_rotary has exact ones.
class RotaryTable {
 public:
  /// For positions from 0 to positions - 1 and heads of some width, of which the first D columns turn, which is even; `factor` times as slowly.
  RotaryTable(double theta, double factor, std::int64_t positions, std::int64_t D, std::int64_t width);

  /// Turns the heads (heads,D) of one position.
  void rotate(float* x, std::size_t heads, std::size_t position) const;
  void rotate_back(float* x, std::size_t heads, std::size_t position) const;
  std::size_t width() const { return width_; }

 private:
  std::size_t pairs_, width_;
  std::vector<float> cos_, sin_;  // (positions, D/2)
};

/// What turns the queries and keys of a layer: a table, the angles of apply_rotary, or nothing.
class Rotary {
 public:
  Rotary() = default;
  explicit Rotary(std::shared_ptr<const RotaryTable> table) : table_(std::move(table)) {}
  /// Of a layer's option `rotary`. Throws CONFIG as apply_rotary does, and for an odd D.
  Rotary(std::string_view op, const RotaryOptions& options, std::int64_t D);

  explicit operator bool() const { return table_ != nullptr || !frequency_.empty(); }

  /// Heads of width D side by side, rows (B·L, heads·D).
  struct Heads {
    float* x;
    std::size_t heads;
  };
  /// Turns them in place; row i of each sequence of `length` rows stands at position first + i.
  void rotate(std::span<const Heads> parts, std::size_t rows, std::size_t length, std::int64_t first, Scratch& scratch) const;
  /// Turns gradients of what rotate() gave, the other way.
  void rotate_back(const Heads& part, std::size_t rows, std::size_t length, std::int64_t first, Scratch& scratch) const;

 private:
  std::shared_ptr<const RotaryTable> table_;
  RotaryOptions options_;
  std::vector<double> frequency_;  // of each pair
};

/// Uninitialised.
inline SinCos* take_turns(std::size_t count, Scratch& scratch) {
  return reinterpret_cast<SinCos*>(scratch.take(count * sizeof(SinCos) / sizeof(float)));
}

}  // namespace attn::detail
