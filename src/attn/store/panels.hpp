#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/store/scratch.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/rows.hpp"

// A weight (out,in) in the order in which the GEMM reads it, by how each of its numbers is kept. Internal.
namespace attn::detail {

/// First of the things of part `part` where `all` things are divided evenly among `parts`. In WebAssembly the product may not fit into a size.
inline std::size_t part_begin(std::size_t all, std::size_t part, std::size_t parts) {
  return static_cast<std::size_t>(std::uint64_t{all} * part / parts);
}

/// Rows in blocks of the same size, but for the last. While a panel of W is in the first-level cache it serves all rows of a block; 96 of them
/// make it worth its way from memory.
struct RowBlocks {
  /// At least one row.
  explicit RowBlocks(std::size_t all) : rows(all), count((all + 95) / 96), size((all + count - 1) / count) {}

  std::size_t begin(std::size_t block) const { return std::min(block * size, rows); }
  std::size_t of(std::size_t row) const { return row / size; }

  std::size_t rows, count, size;
};

template <class Weight>
class Panels;

/// As they are: packing moves numbers and changes none.
template <>
class Panels<float> {
 public:
  /// Room for a weight, and all of it zero.
  void allocate(std::size_t n, std::size_t k);
  /// Whole rows from row `first` on.
  void set_rows(std::size_t first, std::span<const float> rows, std::size_t k);
  void set(const TensorView& weight);
  void unpack(float* weight, std::size_t n, std::size_t k) const;
  void get_row(std::size_t row, std::size_t k, float* values) const;
  /// Panels of the transpose, of its rows [first, end); first is a multiple of height().
  void transposed(std::size_t n, std::size_t k, std::size_t first, std::size_t end, float* panels) const;
  /// Rows of a panel, which lie between each other; those of one of them, from row `first` on, side by side and back.
  static std::size_t height();
  void get_panel(std::size_t first, std::size_t rows, std::size_t k, float* values) const;
  void set_panel(std::size_t first, std::size_t rows, std::size_t k, const float* values);

  /// What x has to be turned into, once for all panels: nothing.
  using Input = const Rows&;
  static Input prepare(const Rows& x, const RowBlocks&, Scratch&) { return x; }

  /// y (..,n) = x Wᵀ + b: rows [i, i + rows) of x, columns [j, end) of W; j is a multiple of a panel's width, y the row i of all columns.
  void multiply(Input x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k, const float* bias,
                float* y) const;

 private:
  AlignedFloats values_;
};

/// int8 with a scale for each row: w = scale · q, scale = max|w| / 127, q the nearest whole number. x is quantized row by row when it
/// comes, by a scale and a zero point of its own, and the sums of their products are exact.
template <>
class Panels<std::int8_t> {
 public:
  void allocate(std::size_t n, std::size_t k);
  /// The rows are finite.
  void set_rows(std::size_t first, std::span<const float> rows, std::size_t k);
  void set(const TensorView& weight);
  /// scale · q
  void unpack(float* weight, std::size_t n, std::size_t k) const;
  void get_row(std::size_t row, std::size_t k, float* values) const;
  /// Rows of q as they are, and their scales.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows, std::size_t k);
  void set_scales(std::span<const float> scales) { scales_.assign(scales.begin(), scales.end()); }
  void get_quantized_row(std::size_t row, std::size_t k, std::int8_t* q, float* scale) const;

  struct Input {
    const std::int32_t* words;
    const float* scales;
    const std::int32_t* corrections;
  };
  static Input prepare(const Rows& x, const RowBlocks& blocks, Scratch& scratch);

  /// As that of float32, of the rows of whole blocks.
  void multiply(const Input& x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k, const float* bias,
                float* y) const;

 private:
  AlignedBytes values_;
  std::vector<float> scales_;       // (out)
  std::vector<std::int32_t> sums_;  // (out), Σ q
};

}  // namespace attn::detail
