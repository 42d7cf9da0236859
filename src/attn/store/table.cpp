#include "attn/store/table.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

void Table::quantize() {
  if (is_quantized_) return;
  is_quantized_ = true;
  if (values_.empty()) return;
  const std::vector<float> values = std::move(values_);
  values_ = {};
  allocate();
  set_rows(0, values);
}

void Table::allocate() {
  if (!is_quantized_) return values_.assign(size(), 0.0F);
  q_.assign(size(), 0);
  scales_.assign(rows_, 0.0F);
}

void Table::set_rows(std::size_t first, std::span<const float> rows) {
  const FloatEnvironment environment;
  if (!is_quantized_) {
    std::copy(rows.begin(), rows.end(), values_.begin() + static_cast<std::ptrdiff_t>(first * width_));
    return;
  }
  for (std::size_t at = 0; at < rows.size(); at += width_, ++first)
    kernels::quantize_weights(rows.data() + at, width_, q_.data() + first * width_, &scales_[first]);
}

void Table::get_row(std::size_t row, float* values) const {
  const FloatEnvironment environment;
  if (!is_quantized_) {
    std::copy_n(values_.data() + row * width_, width_, values);
    return;
  }
  const std::int8_t* const q = q_.data() + row * width_;
  for (std::size_t e = 0; e < width_; ++e) values[e] = scales_[row] * static_cast<float>(q[e]);
}

void Table::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) {
  std::copy(rows.begin(), rows.end(), q_.begin() + static_cast<std::ptrdiff_t>(first * width_));
}

void Table::set_scales(std::span<const float> scales) { scales_.assign(scales.begin(), scales.end()); }

void Table::get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const {
  std::copy_n(q_.data() + row * width_, width_, q);
  *scale = scales_[row];
}

void Table::get(float* values) const {
  for (std::size_t row = 0; row < rows_; ++row) get_row(row, values + row * width_);
}

const float* Table::row(std::size_t row, float* buffer) const {
  if (!is_quantized_) return values_.data() + row * width_;
  get_row(row, buffer);
  return buffer;
}

}  // namespace attn::detail
