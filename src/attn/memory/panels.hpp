#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/memory/scratch.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/rows.hpp"

// Weights (out,in) in the GEMM's order, one class per type of numbers. Internal.
namespace attn::detail {

/// First item of a part. 64-bit, because the product may not fit into std::size_t in WebAssembly.
inline std::size_t part_begin(std::size_t all, std::size_t part, std::size_t parts) {
  return static_cast<std::size_t>(std::uint64_t{all} * part / parts);
}

/// A panel of W in the L1 cache serves a whole block; 96 rows pay for loading it.
struct RowBlocks {
  /// `all` must be at least 1.
  explicit RowBlocks(std::size_t all) : rows(all), count((all + 95) / 96), size((all + count - 1) / count) {}

  std::size_t begin(std::size_t block) const { return std::min(block * size, rows); }
  std::size_t of(std::size_t row) const { return row / size; }

  std::size_t rows, count, size;
};

template <class Weight>
class Panels;

template <>
class Panels<float> {
 public:
  void allocate(std::size_t n, std::size_t k);
  bool empty() const { return values_.size() == 0; }
  void set_rows(std::size_t first, std::span<const float> rows, std::size_t k);
  void set(const TensorView& weight);
  void unpack(float* weight, std::size_t n, std::size_t k) const;
  void get_row(std::size_t row, std::size_t k, float* values) const;
  /// Panels of rows [first, end) of Wᵀ; first % height() == 0.
  void transposed(std::size_t n, std::size_t k, std::size_t first, std::size_t end, float* panels) const;
  /// Rows of a panel are interleaved. get_panel() and set_panel() copy rows of one panel from and to row-major values.
  static std::size_t height();
  void get_panel(std::size_t first, std::size_t rows, std::size_t k, float* values) const;
  void set_panel(std::size_t first, std::size_t rows, std::size_t k, const float* values);

  /// x converted once for all panels.
  using Input = const Rows&;
  static Input prepare(const Rows& x, const RowBlocks&, Scratch&) { return x; }

  /// y (..,n) = x Wᵀ + b for rows [i, i + rows) and columns [j, end); j % height() == 0, y points to column 0 of row i.
  void multiply(Input x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k, const float* bias,
                float* y) const;

 private:
  AlignedFloats values_;
};

/// w = scale · q, with a scale per row. x is quantized when it is used.
template <>
class Panels<std::int8_t> {
 public:
  void allocate(std::size_t n, std::size_t k);
  bool empty() const { return values_.size() == 0; }
  /// Rows must be finite.
  void set_rows(std::size_t first, std::span<const float> rows, std::size_t k);
  void unpack(float* weight, std::size_t n, std::size_t k) const;
  void get_row(std::size_t row, std::size_t k, float* values) const;
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows, std::size_t k);
  void set_scales(std::span<const float> scales) { scales_.assign(scales.begin(), scales.end()); }
  void get_quantized_row(std::size_t row, std::size_t k, std::int8_t* q, float* scale) const;

  struct Input {
    const std::int32_t* words;
    const float* scales;
    const std::int32_t* corrections;
  };
  static Input prepare(const Rows& x, const RowBlocks& blocks, Scratch& scratch);

  /// For rows of whole blocks.
  void multiply(const Input& x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k, const float* bias,
                float* y) const;

 private:
  AlignedBytes values_;
  std::vector<float> scales_;       // (out)
  std::vector<std::int32_t> sums_;  // (out), Σ q
};

}  // namespace attn::detail
