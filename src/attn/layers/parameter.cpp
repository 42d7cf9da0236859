#include "attn/layers/parameter.hpp"

#include <algorithm>

namespace attn::detail {

std::size_t Parameter::size() const {
  std::size_t size = 1;
  for (const std::int64_t dim : shape_) size *= static_cast<std::size_t>(dim);
  return size;
}

void Parameter::allocate() const {
  if (linear_ != nullptr)
    linear_->allocate_weight(shape_[0], shape_[1]);
  else
    values_->assign(size(), 0.0F);
}

void Parameter::set_rows(std::size_t first, std::span<const float> rows) const {
  if (linear_ != nullptr)
    linear_->set_weight_rows(first, rows);
  else
    std::copy(rows.begin(), rows.end(), values_->begin() + static_cast<std::ptrdiff_t>(first * row_size()));
}

void Parameter::get(float* values) const {
  if (linear_ != nullptr)
    linear_->unpack_weight(values);
  else
    std::copy(values_->begin(), values_->end(), values);
}

}  // namespace attn::detail
