#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace attn::detail {

/// A lookup table (N,E) of float32, or of int8 with a scale per row as in Panels<std::int8_t>. Internal.
class Table {
 public:
  Table() = default;
  Table(std::size_t rows, std::size_t width) : rows_(rows), width_(width) {}

  std::size_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  std::size_t size() const { return rows_ * width_; }
  bool empty() const { return rows_ == 0; }
  bool is_quantized() const { return std::holds_alternative<Int8Rows>(values_); }
  /// Returns the same table as int8 or float32. If this one has no numbers yet, neither has the result.
  Table converted(bool to_int8) const;

  /// Only for float32.
  std::vector<float>& values() { return *std::get_if<std::vector<float>>(&values_); }
  /// Allocates a zero table.
  void allocate();
  /// Rows that become int8 must be finite.
  void set_rows(std::size_t first, std::span<const float> rows);
  void get_row(std::size_t row, float* values) const;
  /// Set int8 rows and their scales without conversion.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows);
  void set_scales(std::span<const float> scales);
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;
  void get(float* values) const;
  /// Returns a float32 row in place, and an int8 row converted in `buffer` (E).
  const float* row(std::size_t row, float* buffer) const;

 private:
  struct Int8Rows {
    std::vector<std::int8_t> q;  // (N,E)
    std::vector<float> scales;   // (N)
  };
  const std::vector<float>* float32() const { return std::get_if<std::vector<float>>(&values_); }
  Int8Rows& int8() { return *std::get_if<Int8Rows>(&values_); }
  const Int8Rows& int8() const { return *std::get_if<Int8Rows>(&values_); }

  std::size_t rows_ = 0, width_ = 0;
  std::variant<std::vector<float>, Int8Rows> values_;
};

}  // namespace attn::detail
