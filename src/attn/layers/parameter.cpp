#include "attn/layers/parameter.hpp"

#include <algorithm>

namespace attn::detail {

std::size_t Parameter::size() const {
  std::size_t size = 1;
  for (const std::int64_t dim : shape_) size *= static_cast<std::size_t>(dim);
  return size;
}

void Parameter::allocate() const {
  if (values_ != nullptr)
    values_->assign(size(), 0.0F);
  else if (shape_.rank() == 2)
    *linear_ = PackedLinear(shape_[0], shape_[1]);  // with it the bias
}

void Parameter::set(std::size_t first, std::span<const float> values) const {
  if (values_ != nullptr)
    std::copy(values.begin(), values.end(), values_->begin() + static_cast<std::ptrdiff_t>(first));
  else if (shape_.rank() == 2)
    linear_->set_weight(first, values);
  else
    linear_->set_bias(first, values);
}

void Parameter::get(float* values) const {
  if (values_ != nullptr)
    std::copy(values_->begin(), values_->end(), values);
  else if (shape_.rank() == 2)
    linear_->unpack(values, nullptr);
  else
    linear_->unpack(nullptr, values);
}

}  // namespace attn::detail
