#include "attn/models/checkpoint_tensor.hpp"

#include <algorithm>

namespace attn::detail {

Shape CheckpointTensor::shape() const {
  Shape shape = parts.front().shape();
  for (std::size_t part = 1; part < parts.size(); ++part) shape[0] += parts[part].shape()[0];
  return shape;
}

void CheckpointTensor::set(std::size_t first, std::span<const float> values) const {
  for (const Parameter& part : parts) {
    if (values.empty()) break;
    const std::size_t size = part.size();
    if (first < size) {
      const std::size_t count = std::min(size - first, values.size());
      part.set(first, values.first(count));
      values = values.subspan(count);
      first += count;
    }
    first -= size;
  }
}

void CheckpointTensor::get(float* values) const {
  for (const Parameter& part : parts) {
    part.get(values);
    values += part.size();
  }
}

}  // namespace attn::detail
