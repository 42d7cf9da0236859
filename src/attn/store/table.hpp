#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Rows that are looked up by number. Internal.
namespace attn::detail {

/// (N,E) as float32, or as int8 with a scale for each row, as Panels<std::int8_t> has them.
class Table {
 public:
  Table() = default;
  Table(std::size_t rows, std::size_t width) : rows_(rows), width_(width) {}

  std::size_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  std::size_t size() const { return rows_ * width_; }
  bool empty() const { return rows_ == 0; }
  bool is_quantized() const { return is_quantized_; }
  /// What there is becomes int8, and what comes.
  void quantize();

  /// The numbers, of float32.
  std::vector<float>& values() { return values_; }
  /// Room, and all of it zero.
  void allocate();
  /// Whole rows from row `first` on. Those that become int8 are finite.
  void set_rows(std::size_t first, std::span<const float> rows);
  void get_row(std::size_t row, float* values) const;
  /// Of int8: rows as they are, and their scales.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows);
  void set_scales(std::span<const float> scales);
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;
  /// All of them, row-major.
  void get(float* values) const;
  /// The row where it lies, of float32; else a copy in the buffer (E).
  const float* row(std::size_t row, float* buffer) const;

 private:
  std::size_t rows_ = 0, width_ = 0;
  bool is_quantized_ = false;
  std::vector<float> values_;  // of float32
  std::vector<std::int8_t> q_;
  std::vector<float> scales_;  // (N)
};

}  // namespace attn::detail
