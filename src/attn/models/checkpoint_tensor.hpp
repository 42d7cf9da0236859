#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/parameter.hpp"

namespace attn::detail {

/// A tensor of a checkpoint: parameters of the model, one below the other.
struct CheckpointTensor {
  std::string name;
  std::vector<Parameter> parts;
  bool is_weight = false;  ///< of linear maps, or the word table: what may be int8 with a scale for each row

  Shape shape() const;
  /// Numbers of a row, as Parameter's.
  std::size_t row_size() const { return parts.front().row_size(); }
  bool is_quantized() const { return parts.front().is_quantized(); }
  /// Whether int8 files of the model have it so: what a quantized model has, else what it would have.
  bool is_int8(bool model_is_quantized) const { return model_is_quantized ? is_quantized() : is_weight; }
  /// Throws FORMAT, with the tensor's name, for numbers that are to become int8 and are NaN or infinite.
  void check_finite(std::string_view op, std::span<const float> values) const;
  /// Whole rows from row `first` on.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const;
  /// Of all rows.
  void set_scales(std::span<const float> scales) const;
  /// All of them, row-major.
  void get(float* values) const;
  /// As int8, row-major, and the scales of rows. Throws as check_finite.
  void get_quantized(std::string_view op, std::int8_t* values, float* scales) const;
};

}  // namespace attn::detail
