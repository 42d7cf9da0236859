#pragma once

#include <array>
#include <cstddef>

#include "attn/tensor/view.hpp"

namespace attn::detail {

/// The rows of a view, what its last dimension counts, by their row-major number. Internal: how ops walk an input.
class Rows {
 public:
  explicit Rows(const TensorView& view);
  /// Rows side by side.
  Rows(const float* data, std::size_t count, std::size_t width)
      : data_(data), count_(count), width_(width), last_(count), step_(static_cast<std::ptrdiff_t>(width)) {}

  std::size_t count() const { return count_; }
  std::size_t width() const { return width_; }
  const float* operator[](std::size_t row) const { return last_ == count_ ? data_ + static_cast<std::ptrdiff_t>(row) * step_ : start_of(row); }

  /// Rows from `row` on that lie `step` apart, `most` of them at the most.
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
  std::size_t last_;  // rows that lie step_ apart: all of them, or what the last dimension but one counts
  std::ptrdiff_t step_;
  // Dimensions outside of those, the innermost first.
  std::size_t outer_ = 0;
  std::array<std::size_t, Shape::kMaxRank> dims_{};
  Strides steps_{};
};

}  // namespace attn::detail
