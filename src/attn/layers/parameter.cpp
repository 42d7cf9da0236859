#include "attn/layers/parameter.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/tensor/error.hpp"

namespace attn::detail {

std::size_t ParameterRef::size() const {
  std::size_t size = 1;
  for (const std::int64_t dim : shape) size *= static_cast<std::size_t>(dim);
  return size;
}

std::vector<float>& ParameterRef::numbers() const {
  if (linear == nullptr) return *vector;
  return std::visit([](auto& packed) -> std::vector<float>& { return packed.bias(); }, linear->packed());
}

void ParameterRef::allocate() const {
  if (table != nullptr) return table->allocate();
  if (!is_packed()) return numbers().assign(size(), 0.0F);
  std::visit([&](auto& packed) { packed.allocate_weight(shape[0], shape[1]); }, linear->packed());
}

void ParameterRef::set_rows(std::size_t first_row, std::span<const float> rows) const {
  if (table != nullptr) return table->set_rows(first_row, rows);
  if (is_packed()) return std::visit([&](auto& packed) { packed.set_weight_rows(first_row, rows); }, linear->packed());
  const auto to = numbers().begin() + static_cast<std::ptrdiff_t>(first_row * row_size());
  std::copy(rows.begin(), rows.end(), to);
  if (offset != 0) std::for_each(to, to + std::ssize(rows), [&](float& value) { value += offset; });
}

void ParameterRef::get(float* values) const {
  if (table != nullptr) return table->get(values);
  if (is_packed()) return std::visit([&](const auto& packed) { packed.unpack_weight(values); }, linear->packed());
  float* const end = std::copy(numbers().begin(), numbers().end(), values);
  if (offset != 0) std::for_each(values, end, [&](float& value) { value -= offset; });
}

void ParameterRef::get_row(std::size_t row, float* values) const {
  if (table != nullptr) return table->get_row(row, values);
  if (is_packed()) return std::visit([&](const auto& packed) { packed.weight().get_row(row, row_size(), values); }, linear->packed());
  std::copy_n(numbers().begin() + static_cast<std::ptrdiff_t>(row * row_size()), row_size(), values);
}

float* ParameterRef::values() const {
  if (is_packed() || is_quantized()) return nullptr;
  return table != nullptr ? table->values() : numbers().data();
}

Panels<float>* ParameterRef::panels() const {
  if (table != nullptr) return table->panels();
  PackedLinear* const packed = is_packed() ? linear->float32() : nullptr;
  return packed != nullptr ? &packed->weight() : nullptr;
}

bool ParameterRef::is_quantized() const { return is_packed() ? linear->is_quantized() : table != nullptr && table->is_quantized(); }

void ParameterRef::set_quantized_rows(std::size_t first_row, std::span<const std::int8_t> rows) const {
  if (!is_quantized()) return set_rows(first_row, std::vector<float>(rows.begin(), rows.end()));
  if (table != nullptr) return table->set_quantized_rows(first_row, rows);
  linear->int8()->weight().set_quantized_rows(first_row, rows, row_size());
}

void ParameterRef::set_scales(std::span<const float> scales) const {
  if (is_quantized()) return table != nullptr ? table->set_scales(scales) : linear->int8()->weight().set_scales(scales);
  std::vector<float> row(row_size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    get_row(i, row.data());
    for (float& value : row) value = scales[i] * value;
    set_rows(i, row);
  }
}

void ParameterRef::get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const {
  if (table != nullptr)
    table->get_quantized_row(row, q, scale);
  else
    linear->int8()->weight().get_quantized_row(row, row_size(), q, scale);
}

namespace {

std::size_t height_of(const ParameterRef& piece) { return piece.size() / piece.row_size(); }

/// Calls set(piece, first row in the piece, rows of the piece).
template <class Number, class Set>
void share_rows(const StateTensor& tensor, std::size_t first, std::span<const Number> rows, Set set) {
  const std::size_t count = tensor.pieces.size(), width = tensor.pieces.front().row_size();
  while (!rows.empty()) {
    std::size_t piece = 0, row = first, end = 0;
    if (tensor.block > 0) {
      piece = first / tensor.block % count;
      row = first / (tensor.block * count) * tensor.block + first % tensor.block;
      end = row - row % tensor.block + tensor.block;
    } else {
      while (piece + 1 < count && row >= height_of(tensor.pieces[piece])) row -= height_of(tensor.pieces[piece++]);
      end = height_of(tensor.pieces[piece]);
    }
    const std::size_t size = std::min((end - row) * width, rows.size());
    set(tensor.pieces[piece], row, rows.first(size));
    rows = rows.subspan(size);
    first += end - row;
  }
}

}  // namespace

std::size_t StateTensor::row_of(std::size_t piece, std::size_t row) const {
  if (block > 0) return (row / block * pieces.size() + piece) * block + row % block;
  for (std::size_t i = 0; i < piece; ++i) row += height_of(pieces[i]);
  return row;
}

Shape StateTensor::shape() const {
  if (own_shape.rank() > 0) return own_shape;
  Shape shape = pieces.front().shape;
  for (std::size_t piece = 1; piece < pieces.size(); ++piece) shape[0] += pieces[piece].shape[0];
  if (is_transposed) std::swap(shape[0], shape[1]);
  return shape;
}

std::size_t StateTensor::size() const {
  std::size_t size = 0;
  for (const ParameterRef& piece : pieces) size += piece.size();
  return size;
}

void check_finite(std::string_view op, std::string_view name, std::span<const float> values) {
  if (!kernels::best().all_finite(values.data(), 1, values.size()))
    fail(ErrorCode::format, op, name, {"finite numbers"}, {"NaN or infinity"}, "Only finite numbers become int8");
}

void StateTensor::set_rows(std::size_t first, std::span<const float> rows) const {
  if (is_transposed) {
    const auto in = static_cast<std::size_t>(shape()[0]), out = rows.size() / in;
    std::vector<float> weight(rows.size());
    kernels::transpose(rows.data(), static_cast<std::ptrdiff_t>(out), in, out, weight.data(), in);
    return StateTensor{pieces}.set_rows(0, weight);
  }
  share_rows(*this, first, rows, [](const ParameterRef& piece, std::size_t from, std::span<const float> own) { piece.set_rows(from, own); });
}

void StateTensor::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const {
  share_rows(*this, first, rows,
             [](const ParameterRef& piece, std::size_t from, std::span<const std::int8_t> own) { piece.set_quantized_rows(from, own); });
}

void StateTensor::set_scales(std::span<const float> scales) const {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::vector<float> own(height_of(pieces[i]));
    for (std::size_t row = 0; row < own.size(); ++row) own[row] = scales[row_of(i, row)];
    pieces[i].set_scales(own);
  }
}

void StateTensor::get(float* values) const {
  if (is_transposed) {
    const auto in = static_cast<std::size_t>(shape()[0]), out = size() / in;
    std::vector<float> weight(size());
    StateTensor{pieces}.get(weight.data());
    return kernels::transpose(weight.data(), static_cast<std::ptrdiff_t>(in), out, in, values, out);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ParameterRef& piece = pieces[i];
    for (std::size_t row = 0; row < height_of(piece) && block > 0; ++row) piece.get_row(row, values + row_of(i, row) * piece.row_size());
    if (block > 0) continue;
    piece.get(values);
    values += piece.size();
  }
}

void StateTensor::get_quantized(std::string_view op, std::string_view name, std::int8_t* values, float* scales) const {
  std::vector<float> numbers(pieces.front().row_size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (std::size_t row = 0; row < height_of(pieces[i]); ++row) {
      const std::size_t place = row_of(i, row);
      std::int8_t* const q = values + place * numbers.size();
      float* const scale = scales + place;
      if (pieces[i].is_quantized()) {
        pieces[i].get_quantized_row(row, q, scale);
        continue;
      }
      pieces[i].get_row(row, numbers.data());
      check_finite(op, name, numbers);
      kernels::best().quantize_weights(numbers.data(), numbers.size(), q, scale);
    }
}

void ParameterVisitor::add(std::string_view name, ParameterRef parameter, std::string_view torch_name, std::size_t first) {
  parameter.name = prefix_ + std::string(torch_name);
  parameter.first = first;
  parameter.stream = stream;
  tensors_[names_ == Names::torch ? parameter.name : prefix_ + std::string(name)].pieces.push_back(std::move(parameter));
}

}  // namespace attn::detail
