#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attn/store/panels.hpp"
#include "attn/store/table.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {

class Linear;

/// One parameter of a layer where it lies, for weights that come piece by piece. Refers to the layer, which must stay in its place.
class Parameter {
 public:
  Parameter() = default;
  Parameter(const Shape& shape, std::vector<float>* values) : shape_(shape), values_(values) {}
  Parameter(const Shape& shape, Table* table) : shape_(shape), table_(table) {}
  /// The weight (out,in) of a linear map.
  Parameter(const Shape& shape, Linear* linear) : shape_(shape), linear_(linear) {}

  /// Whether both are the same one.
  bool operator==(const Parameter& other) const { return values_ == other.values_ && table_ == other.table_ && linear_ == other.linear_; }

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
  /// Where they lie, of float32: row-major, or, of a linear map's weight, in panels. One of the two is null.
  float* values() const;
  Panels<float>* panels() const;

  // Of what may be int8 with a scale for each row, a table or the weight of a linear map:
  bool is_quantized() const;
  /// Whole rows from row `first` on as int8, whose scales are still to come.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const;
  /// The scales of all rows, which are there.
  void set_scales(std::span<const float> scales) const;
  /// A row as int8 and its scale: as it is kept, or as quantize() would keep it.
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;
  void get_row(std::size_t row, float* values) const;

 private:
  Shape shape_;
  std::vector<float>* values_ = nullptr;
  Table* table_ = nullptr;
  Linear* linear_ = nullptr;
};

/// By torch's names.
using Parameters = std::map<std::string, Parameter>;

/// By the names of the state. One of them may lie in pieces, one below the other: a packed in_proj_weight is three linear maps'.
using StateParameters = std::map<std::string, std::vector<Parameter>>;
/// From what add_parameters() gave, where projections of attention have their separate form, and the shapes of the state.
StateParameters state_parameters(const Parameters& parameters, const std::map<std::string, Shape>& shapes);

}  // namespace attn::detail
