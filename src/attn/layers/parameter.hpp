#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attn/store/packed_linear.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// One parameter of a layer where it lies, for weights that come piece by piece. Refers to the layer, which must stay in its place.
class Parameter {
 public:
  Parameter() = default;
  Parameter(const Shape& shape, std::vector<float>* values) : shape_(shape), values_(values) {}
  /// The weight (out,in) of a linear map.
  Parameter(const Shape& shape, PackedLinear* linear) : shape_(shape), linear_(linear) {}

  const Shape& shape() const { return shape_; }
  std::size_t size() const;
  /// Numbers of a row, the last dimension.
  std::size_t row_size() const { return shape_.rank() > 1 ? static_cast<std::size_t>(shape_.back(0)) : 1; }
  /// Makes room, and all of it zero.
  void allocate() const;
  /// Whole rows, the first of them row `first`. A row of a vector is one number.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  /// All of them, row-major.
  void get(float* values) const;

 private:
  Shape shape_;
  std::vector<float>* values_ = nullptr;
  PackedLinear* linear_ = nullptr;
};

/// By torch's names.
using Parameters = std::map<std::string, Parameter>;

}  // namespace attn::detail
