#pragma once

#include <array>
#include <cstddef>

#include "attn/tensor/view.hpp"

namespace attn::detail {

/// Rows of a view's last dimension, in row-major order. Internal.
class Rows {
 public:
  explicit Rows(const TensorView& view);
  /// Without gaps.
  Rows(const float* data, std::size_t count, std::size_t width)
      : data_(data), count_(count), width_(width), last_(count), step_(static_cast<std::ptrdiff_t>(width)) {}

  std::size_t count() const { return count_; }
  std::size_t width() const { return width_; }
  const float* operator[](std::size_t row) const { return last_ == count_ ? data_ + static_cast<std::ptrdiff_t>(row) * step_ : start_of(row); }

  struct Run {
    const float* data;
    std::size_t count;
    std::ptrdiff_t step;
  };
  Run run(std::size_t row, std::size_t most) const;

 private:
  const float* start_of(std::size_t row) const;

  const float* data_;
  std::size_t count_, width_;
  std::size_t last_;  // rows that are step_ apart: all, or those of the innermost dimensions
  std::ptrdiff_t step_;
  // The other dimensions, innermost first.
  std::size_t outer_ = 0;
  std::array<std::size_t, Shape::kMaxRank> dims_{};
  Strides steps_{};
};

}  // namespace attn::detail
