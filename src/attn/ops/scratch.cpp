#include "attn/ops/scratch.hpp"

#include <algorithm>
#include <new>

#include "attn/tensor/rows.hpp"

namespace attn::detail {

Scratch::Scratch(Workspace* workspace)
    : workspace_(workspace != nullptr && !workspace->taken_.test_and_set(std::memory_order_acquire) ? workspace : nullptr) {}

Scratch::~Scratch() {
  if (workspace_ == nullptr) return;
  AlignedFloats& block = workspace_->block_;
  if (most_ > block.size()) {
    more_.clear();
    block = AlignedFloats();  // first, so that both are never held together
    try {
      block = AlignedFloats(most_);
    } catch (const std::bad_alloc&) {
      // The next call takes its memory piece by piece again.
    }
  }
  workspace_->taken_.clear(std::memory_order_release);
}

float* Scratch::take(std::size_t size) {
  constexpr std::size_t kLine = 16;
  size = (size + kLine - 1) / kLine * kLine;
  const std::size_t first = used_;
  const bool fits = workspace_ != nullptr && more_.empty() && first + size <= workspace_->block_.size();
  if (!fits) more_.emplace_back(size);
  used_ += size;
  most_ = std::max(most_, used_);
  return fits ? workspace_->block_.data() + first : more_.back().data();
}

Scratch::Frame::~Frame() {
  scratch_.more_.resize(more_);
  scratch_.used_ = used_;
}

const float* without_gaps(const TensorView& x, Scratch& scratch) {
  if (is_contiguous(x.shape, x.strides)) return x.data;
  const Rows rows(x);
  float* const copy = scratch.take(rows.count() * rows.width());
  for (std::size_t row = 0; row < rows.count(); ++row) std::copy_n(rows[row], rows.width(), copy + row * rows.width());
  return copy;
}

}  // namespace attn::detail
