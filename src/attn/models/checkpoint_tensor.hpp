#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "attn/layers/parameter.hpp"

namespace attn::detail {

/// A tensor of a checkpoint: parameters of the model, one below the other.
struct CheckpointTensor {
  std::string name;
  std::vector<Parameter> parts;

  Shape shape() const;
  /// Numbers of a row, as Parameter's.
  std::size_t row_size() const { return parts.front().row_size(); }
  /// Whole rows from row `first` on.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  /// All of them, row-major.
  void get(float* values) const;
};

}  // namespace attn::detail
