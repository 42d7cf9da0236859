#include "attn/store/table.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

Table Table::converted(bool to_int8) const {
  Table next(rows_, width_);
  if (to_int8) next.values_.emplace<Int8Rows>();
  if (is_quantized() ? int8().q.empty() : float32()->empty()) return next;
  next.allocate();
  std::vector<float> values(width_);
  for (std::size_t row = 0; row < rows_; ++row) {
    get_row(row, values.data());
    next.set_rows(row, values);
  }
  return next;
}

void Table::allocate() {
  if (!is_quantized()) return values().assign(size(), 0.0F);
  int8() = {std::vector<std::int8_t>(size()), std::vector<float>(rows_)};
}

void Table::set_rows(std::size_t first, std::span<const float> rows) {
  const FloatEnvironment environment;
  if (!is_quantized()) {
    std::copy(rows.begin(), rows.end(), values().begin() + static_cast<std::ptrdiff_t>(first * width_));
    return;
  }
  for (std::size_t at = 0; at < rows.size(); at += width_, ++first)
    kernels::best().quantize_weights(rows.data() + at, width_, int8().q.data() + first * width_, &int8().scales[first]);
}

void Table::get_row(std::size_t row, float* values) const {
  const FloatEnvironment environment;
  if (const std::vector<float>* const numbers = float32())
    std::copy_n(numbers->data() + row * width_, width_, values);
  else
    kernels::best().dequantize_row(int8().q.data() + row * width_, int8().scales[row], values, width_);
}

void Table::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) {
  std::copy(rows.begin(), rows.end(), int8().q.begin() + static_cast<std::ptrdiff_t>(first * width_));
}

void Table::set_scales(std::span<const float> scales) { int8().scales.assign(scales.begin(), scales.end()); }

void Table::get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const {
  std::copy_n(int8().q.data() + row * width_, width_, q);
  *scale = int8().scales[row];
}

void Table::get(float* values) const {
  for (std::size_t row = 0; row < rows_; ++row) get_row(row, values + row * width_);
}

const float* Table::row(std::size_t row, float* buffer) const {
  if (const std::vector<float>* const numbers = float32()) return numbers->data() + row * width_;
  get_row(row, buffer);
  return buffer;
}

}  // namespace attn::detail
