#include "attn/layers/parameter.hpp"

#include <algorithm>
#include <vector>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/linear.hpp"

namespace attn::detail {

std::size_t Parameter::size() const {
  std::size_t size = 1;
  for (const std::int64_t dim : shape_) size *= static_cast<std::size_t>(dim);
  return size;
}

void Parameter::allocate() const {
  if (linear_ != nullptr)
    linear_->allocate_weight();
  else if (table_ != nullptr)
    table_->allocate();
  else
    values_->assign(size(), 0.0F);
}

void Parameter::set_rows(std::size_t first, std::span<const float> rows) const {
  if (linear_ != nullptr)
    linear_->set_weight_rows(first, rows);
  else if (table_ != nullptr)
    table_->set_rows(first, rows);
  else
    std::copy(rows.begin(), rows.end(), values_->begin() + static_cast<std::ptrdiff_t>(first * row_size()));
}

void Parameter::get(float* values) const {
  if (linear_ != nullptr)
    linear_->unpack(values, nullptr);
  else if (table_ != nullptr)
    table_->get(values);
  else
    std::copy(values_->begin(), values_->end(), values);
}

float* Parameter::values() const {
  if (linear_ != nullptr) return nullptr;
  return table_ != nullptr ? table_->values().data() : values_->data();
}

Panels<float>* Parameter::panels() const { return linear_ != nullptr ? &linear_->panels() : nullptr; }

bool Parameter::is_quantized() const { return linear_ != nullptr ? linear_->is_quantized() : table_ != nullptr && table_->is_quantized(); }

void Parameter::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const {
  if (!is_quantized())
    set_rows(first, std::vector<float>(rows.begin(), rows.end()));
  else if (linear_ != nullptr)
    linear_->set_quantized_rows(first, rows);
  else
    table_->set_quantized_rows(first, rows);
}

void Parameter::set_scales(std::span<const float> scales) const {
  if (is_quantized()) return linear_ != nullptr ? linear_->set_scales(scales) : table_->set_scales(scales);
  std::vector<float> row(row_size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    get_row(i, row.data());
    for (float& value : row) value = scales[i] * value;
    set_rows(i, row);
  }
}

void Parameter::get_row(std::size_t row, float* values) const {
  if (linear_ != nullptr)
    linear_->get_weight_row(row, values);
  else
    table_->get_row(row, values);
}

void Parameter::get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const {
  if (!is_quantized()) {
    std::vector<float> values(row_size());
    get_row(row, values.data());
    kernels::quantize_weights(values.data(), values.size(), q, scale);
  } else if (linear_ != nullptr) {
    linear_->get_quantized_row(row, q, scale);
  } else {
    table_->get_quantized_row(row, q, scale);
  }
}

StateParameters state_parameters(const Parameters& parameters, const std::map<std::string, Shape>& shapes) {
  StateParameters all;
  for (const auto& [name, shape] : shapes) {
    std::vector<Parameter>& pieces = all[name];
    const auto add = [&](const std::string& piece) { pieces.push_back(parameters.at(piece)); };
    const auto replaced = [&](std::string_view end, std::string_view other) { return name.substr(0, name.size() - end.size()).append(other); };
    if (parameters.contains(name))
      add(name);
    else if (name.ends_with("in_proj_weight"))
      for (const char* projection : {"q_proj.weight", "k_proj.weight", "v_proj.weight"}) add(replaced("in_proj_weight", projection));
    else if (name.ends_with("in_proj_bias"))
      for (const char* projection : {"q_proj.bias", "k_proj.bias", "v_proj.bias"}) add(replaced("in_proj_bias", projection));
    else
      add(replaced("_weight", ".weight"));  // q_proj_weight, where keys or values have a width of their own
  }
  return all;
}

}  // namespace attn::detail
