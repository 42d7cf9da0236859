#include "attn/models/checkpoint_tensor.hpp"

#include <algorithm>

namespace attn::detail {

Shape CheckpointTensor::shape() const {
  Shape shape = parts.front().shape();
  for (std::size_t part = 1; part < parts.size(); ++part) shape[0] += parts[part].shape()[0];
  return shape;
}

void CheckpointTensor::set_rows(std::size_t first, std::span<const float> rows) const {
  for (const Parameter& part : parts) {
    if (rows.empty()) break;
    const auto height = static_cast<std::size_t>(part.shape()[0]);
    if (first < height) {
      const std::size_t count = std::min((height - first) * part.row_size(), rows.size());
      part.set_rows(first, rows.first(count));
      rows = rows.subspan(count);
      first = height;
    }
    first -= height;
  }
}

void CheckpointTensor::get(float* values) const {
  for (const Parameter& part : parts) {
    part.get(values);
    values += part.size();
  }
}

}  // namespace attn::detail
