#include "attn/tensor/rows.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace attn {

TensorCopy::TensorCopy(const TensorView& given) {
  const detail::Rows rows(given);
  auto numbers = std::make_shared<std::vector<float>>(static_cast<std::size_t>(checked_size(given.shape, "attn", "a tensor")));
  for (std::size_t row = 0; row < rows.count(); ++row) std::copy_n(rows[row], rows.width(), numbers->data() + row * rows.width());
  TensorView::operator=({numbers->data(), given.shape});
  owner_ = std::move(numbers);
}

namespace detail {

Rows::Rows(const TensorView& view) : data_(view.data), count_(1), width_(1), last_(1), step_(0) {
  const std::size_t rank = view.shape.rank();
  if (rank == 0) return;
  width_ = static_cast<std::size_t>(view.shape.back(0));
  step_ = static_cast<std::ptrdiff_t>(width_);
  bool merges = true;
  for (std::size_t axis = rank - 1; axis-- > 0;) {
    const auto dim = static_cast<std::size_t>(view.shape[axis]);
    if (dim == 0) {
      count_ = last_ = 0;
      return;
    }
    if (dim == 1) continue;
    const std::ptrdiff_t step = view.strides[axis];
    if (count_ == 1) {
      last_ = dim;
      step_ = step;
    } else if (merges && step == static_cast<std::ptrdiff_t>(last_) * step_) {
      last_ *= dim;
    } else {
      merges = false;
      dims_[outer_] = dim;
      steps_[outer_++] = step;
    }
    count_ *= dim;
  }
}

const float* Rows::start_of(std::size_t row) const {
  const float* start = data_ + static_cast<std::ptrdiff_t>(row % last_) * step_;
  row /= last_;
  for (std::size_t i = 0; i < outer_; ++i) {
    start += static_cast<std::ptrdiff_t>(row % dims_[i]) * steps_[i];
    row /= dims_[i];
  }
  return start;
}

Rows::Run Rows::run(std::size_t row, std::size_t most) const { return {(*this)[row], std::min(most, last_ - row % last_), step_}; }

}  // namespace detail
}  // namespace attn
