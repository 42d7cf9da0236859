#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/store/scratch.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/rows.hpp"

// Weights (out,in) in the order in which the GEMM reads them, one class per type of stored numbers. Internal.
namespace attn::detail {

/// Returns the first item of part `part` if `all` items are divided evenly among `parts`. 64-bit, because in
/// WebAssembly the product may not fit into std::size_t.
inline std::size_t part_begin(std::size_t all, std::size_t part, std::size_t parts) {
  return static_cast<std::size_t>(std::uint64_t{all} * part / parts);
}

/// Divides rows into blocks of equal size, except for the last. While a panel of W is in the L1 cache it serves all
/// rows of a block; 96 rows make it worth loading from memory.
struct RowBlocks {
  /// `all` must be at least 1.
  explicit RowBlocks(std::size_t all) : rows(all), count((all + 95) / 96), size((all + count - 1) / count) {}

  std::size_t begin(std::size_t block) const { return std::min(block * size, rows); }
  std::size_t of(std::size_t row) const { return row / size; }

  std::size_t rows, count, size;
};

template <class Weight>
class Panels;

/// float32: packing moves numbers without changing them.
template <>
class Panels<float> {
 public:
  /// Allocates a zero weight.
  void allocate(std::size_t n, std::size_t k);
  bool empty() const { return values_.size() == 0; }
  void set_rows(std::size_t first, std::span<const float> rows, std::size_t k);
  void set(const TensorView& weight);
  void unpack(float* weight, std::size_t n, std::size_t k) const;
  void get_row(std::size_t row, std::size_t k, float* values) const;
  /// Writes the panels of Wᵀ for its rows [first, end); first % height() == 0.
  void transposed(std::size_t n, std::size_t k, std::size_t first, std::size_t end, float* panels) const;
  /// Returns the number of rows of a panel, which are interleaved. get_panel() and set_panel() copy rows
  /// [first, first + rows) of one panel to row-major values and back.
  static std::size_t height();
  void get_panel(std::size_t first, std::size_t rows, std::size_t k, float* values) const;
  void set_panel(std::size_t first, std::size_t rows, std::size_t k, const float* values);

  /// Converts x once for all panels. float32 needs no conversion.
  using Input = const Rows&;
  static Input prepare(const Rows& x, const RowBlocks&, Scratch&) { return x; }

  /// Computes y (..,n) = x Wᵀ + b for rows [i, i + rows) of x and columns [j, end) of y. j is a multiple of height(),
  /// and y points to column 0 of row i.
  void multiply(Input x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k, const float* bias,
                float* y) const;

 private:
  AlignedFloats values_;
};

/// int8 with a scale per row: w = scale · q, scale = max|w| / 127, q rounded to the nearest integer. Each row of x is
/// quantized when it is used, with a scale and a zero point, and the sums of products are exact.
template <>
class Panels<std::int8_t> {
 public:
  void allocate(std::size_t n, std::size_t k);
  bool empty() const { return values_.size() == 0; }
  /// Quantizes rows, which must be finite.
  void set_rows(std::size_t first, std::span<const float> rows, std::size_t k);
  /// Writes scale · q.
  void unpack(float* weight, std::size_t n, std::size_t k) const;
  void get_row(std::size_t row, std::size_t k, float* values) const;
  /// Set rows of q and their scales without conversion.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows, std::size_t k);
  void set_scales(std::span<const float> scales) { scales_.assign(scales.begin(), scales.end()); }
  void get_quantized_row(std::size_t row, std::size_t k, std::int8_t* q, float* scale) const;

  struct Input {
    const std::int32_t* words;
    const float* scales;
    const std::int32_t* corrections;
  };
  static Input prepare(const Rows& x, const RowBlocks& blocks, Scratch& scratch);

  /// Like multiply() of float32, for rows of whole blocks.
  void multiply(const Input& x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k, const float* bias,
                float* y) const;

 private:
  AlignedBytes values_;
  std::vector<float> scales_;       // (out)
  std::vector<std::int32_t> sums_;  // (out), Σ q
};

}  // namespace attn::detail
