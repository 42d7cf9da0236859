#include "attn/memory/table.hpp"

#include <algorithm>
#include <concepts>

#include "attn/memory/packed_linear.hpp"

namespace attn::detail {

Table::Table(std::size_t rows, std::size_t width, bool is_shared) : rows_(rows), width_(width), is_shared_(is_shared) {
  if (is_shared) values_.emplace<Panels<float>>();
}

bool Table::has_numbers() const {
  return std::visit([](const auto& values) { return !values.empty(); }, values_);
}

Table Table::converted(bool to_int8) const {
  Table next(rows_, width_, is_shared_);
  if (to_int8) next.values_.emplace<Panels<std::int8_t>>();
  if (!has_numbers()) return next;
  next.allocate();
  std::vector<float> values(width_);
  for (std::size_t row = 0; row < rows_; ++row) {
    get_row(row, values.data());
    next.set_rows(row, values);
  }
  return next;
}

float* Table::values() {
  Values* const numbers = std::get_if<Values>(&values_);
  return numbers != nullptr ? numbers->data() : nullptr;
}

void Table::allocate() {
  if (Values* const numbers = std::get_if<Values>(&values_)) return numbers->assign(size(), 0.0F);
  if (Panels<float>* const float32 = panels()) return float32->allocate(rows_, width_);
  std::get_if<Panels<std::int8_t>>(&values_)->allocate(rows_, width_);
}

void Table::set_rows(std::size_t first, std::span<const float> rows) {
  const auto set = [&]<class T>(T& to) {
    if constexpr (std::same_as<T, Values>)
      std::copy(rows.begin(), rows.end(), to.begin() + static_cast<std::ptrdiff_t>(first * width_));
    else
      to.set_rows(first, rows, width_);
  };
  std::visit(set, values_);
}

void Table::get_row(std::size_t row, float* values) const {
  const auto get = [&]<class T>(const T& from) {
    if constexpr (std::same_as<T, Values>)
      std::copy_n(from.data() + row * width_, width_, values);
    else
      from.get_row(row, width_, values);
  };
  std::visit(get, values_);
}

void Table::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) {
  std::get_if<Panels<std::int8_t>>(&values_)->set_quantized_rows(first, rows, width_);
}

void Table::set_scales(std::span<const float> scales) { std::get_if<Panels<std::int8_t>>(&values_)->set_scales(scales); }

void Table::get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const {
  std::get_if<Panels<std::int8_t>>(&values_)->get_quantized_row(row, width_, q, scale);
}

void Table::get(float* values) const {
  for (std::size_t row = 0; row < rows_; ++row) get_row(row, values + row * width_);
}

const float* Table::row(std::size_t row, float* buffer) const {
  if (const Values* const numbers = std::get_if<Values>(&values_)) return numbers->data() + row * width_;
  get_row(row, buffer);
  return buffer;
}

void Table::multiply(const Rows& x, const float* bias, float* y, Scratch& scratch) const {
  const auto multiply_panels = [&]<class Weight>(const Panels<Weight>& panels) {
    const PanelProduct<Weight> product{&panels, rows_, bias, y};
    detail::multiply<Weight>({&product, 1}, x, scratch);
  };
  if (const Panels<float>* const float32 = std::get_if<Panels<float>>(&values_)) return multiply_panels(*float32);
  multiply_panels(*std::get_if<Panels<std::int8_t>>(&values_));
}

void Table::multiply_transposed(const float* y, std::size_t rows, float* x, Scratch& scratch) const {
  multiply_by_weight(*std::get_if<Panels<float>>(&values_), rows_, width_, y, rows, x, scratch);
}

}  // namespace attn::detail
