#pragma once

#include <array>
#include <cstddef>

#include "attn/tensor/view.hpp"

namespace attn::detail {

/// The rows of a view (its last dimension) in row-major order. Internal: ops read their inputs as Rows.
class Rows {
 public:
  explicit Rows(const TensorView& view);
  /// Rows without gaps.
  Rows(const float* data, std::size_t count, std::size_t width)
      : data_(data), count_(count), width_(width), last_(count), step_(static_cast<std::ptrdiff_t>(width)) {}

  std::size_t count() const { return count_; }
  std::size_t width() const { return width_; }
  const float* operator[](std::size_t row) const { return last_ == count_ ? data_ + static_cast<std::ptrdiff_t>(row) * step_ : start_of(row); }

  /// Consecutive rows at a distance of `step`.
  struct Run {
    const float* data;
    std::size_t count;
    std::ptrdiff_t step;
  };
  /// Returns at most `most` rows from `row` on.
  Run run(std::size_t row, std::size_t most) const;

 private:
  const float* start_of(std::size_t row) const;

  const float* data_;
  std::size_t count_, width_;
  std::size_t last_;  // number of rows at a distance of step_: all of them, or those of the innermost dimensions
  std::ptrdiff_t step_;
  // Dimensions outside of these, innermost first.
  std::size_t outer_ = 0;
  std::array<std::size_t, Shape::kMaxRank> dims_{};
  Strides steps_{};
};

}  // namespace attn::detail
