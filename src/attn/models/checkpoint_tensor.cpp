#include "attn/models/checkpoint_tensor.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/tensor/error.hpp"

namespace attn::detail {
namespace {

/// Hands each part those of the rows that are its own: set(part, its first row, numbers).
template <class Number, class Set>
void share_rows(std::span<const Parameter> parts, std::size_t first, std::span<const Number> rows, Set set) {
  for (const Parameter& part : parts) {
    if (rows.empty()) break;
    const auto height = static_cast<std::size_t>(part.shape()[0]);
    if (first < height) {
      const std::size_t count = std::min((height - first) * part.row_size(), rows.size());
      set(part, first, rows.first(count));
      rows = rows.subspan(count);
      first = height;
    }
    first -= height;
  }
}

}  // namespace

Shape CheckpointTensor::shape() const {
  Shape shape = parts.front().shape();
  for (std::size_t part = 1; part < parts.size(); ++part) shape[0] += parts[part].shape()[0];
  return shape;
}

void CheckpointTensor::check_finite(std::string_view op, std::span<const float> values) const {
  if (!kernels::best().all_finite(values.data(), 1, values.size()))
    fail(ErrorCode::format, op, name, {"finite numbers"}, {"NaN or infinity"}, "Only finite numbers become int8");
}

void CheckpointTensor::set_rows(std::size_t first, std::span<const float> rows) const {
  share_rows(parts, first, rows, [](const Parameter& part, std::size_t from, std::span<const float> own) { part.set_rows(from, own); });
}

void CheckpointTensor::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const {
  share_rows(parts, first, rows,
             [](const Parameter& part, std::size_t from, std::span<const std::int8_t> own) { part.set_quantized_rows(from, own); });
}

void CheckpointTensor::set_scales(std::span<const float> scales) const {
  for (const Parameter& part : parts) {
    const auto height = static_cast<std::size_t>(part.shape()[0]);
    part.set_scales(scales.first(height));
    scales = scales.subspan(height);
  }
}

void CheckpointTensor::get(float* values) const {
  for (const Parameter& part : parts) {
    part.get(values);
    values += part.size();
  }
}

void CheckpointTensor::get_quantized(std::string_view op, std::int8_t* values, float* scales) const {
  std::vector<float> numbers(row_size());
  for (const Parameter& part : parts)
    for (std::size_t row = 0; row < static_cast<std::size_t>(part.shape()[0]); ++row, values += part.row_size()) {
      if (!part.is_quantized()) {
        part.get_row(row, numbers.data());
        check_finite(op, numbers);
      }
      part.get_quantized_row(row, values, scales++);
    }
}

}  // namespace attn::detail
