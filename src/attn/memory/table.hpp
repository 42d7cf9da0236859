#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "attn/memory/panels.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// W (N,E). int8, and float32 that a language model's head shares (Press & Wolf 2017), are stored as panels for
/// multiply(); a lookup then reads E places of a panel. Other float32 is row-major.
class Table {
 public:
  Table() = default;
  /// `is_shared`: a head multiplies by the table.
  Table(std::size_t rows, std::size_t width, bool is_shared = false);

  std::size_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  std::size_t size() const { return rows_ * width_; }
  bool empty() const { return rows_ == 0; }
  bool is_quantized() const { return std::holds_alternative<Panels<std::int8_t>>(values_); }
  bool is_shared() const { return is_shared_; }
  Table converted(bool to_int8) const;

  /// Row-major numbers or null.
  float* values();
  /// Panels or null.
  Panels<float>* panels() { return std::get_if<Panels<float>>(&values_); }
  void allocate();
  /// Rows must be finite if they become int8.
  void set_rows(std::size_t first, std::span<const float> rows);
  void get_row(std::size_t row, float* values) const;
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows);
  void set_scales(std::span<const float> scales);
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;
  void get(float* values) const;
  /// Copies to `buffer` (E) unless row-major.
  const float* row(std::size_t row, float* buffer) const;

  /// y (rows,N) = x Wᵀ + b, x (rows,E). Only for a shared table; the bits are those of BasicPackedLinear.
  void multiply(const Rows& x, const float* bias, float* y, Scratch& scratch) const;
  /// x (rows,E) = y W, y (rows,N). Only for a shared float32 table.
  void multiply_transposed(const float* y, std::size_t rows, float* x, Scratch& scratch) const;

 private:
  using Values = std::vector<float>;
  bool has_numbers() const;

  std::size_t rows_ = 0, width_ = 0;
  bool is_shared_ = false;
  std::variant<Values, Panels<float>, Panels<std::int8_t>> values_;
};

}  // namespace attn::detail
