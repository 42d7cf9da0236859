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
  /// Values from the row-major index `first` on.
  void set(std::size_t first, std::span<const float> values) const;
  /// All of them, row-major.
  void get(float* values) const;
};

}  // namespace attn::detail
