#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attn/ops/linear.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// One parameter of a layer where it lies, for weights that come piece by piece. Refers to the layer, which must stay in its place.
class Parameter {
 public:
  Parameter() = default;
  Parameter(const Shape& shape, std::vector<float>* values) : shape_(shape), values_(values) {}
  /// The weight (out,in) or the bias (out) of a linear map.
  Parameter(const Shape& shape, PackedLinear* linear) : shape_(shape), linear_(linear) {}

  const Shape& shape() const { return shape_; }
  std::size_t size() const;
  /// Makes room, and all of it zero.
  void allocate() const;
  /// Values from the row-major index `first` on.
  void set(std::size_t first, std::span<const float> values) const;
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
