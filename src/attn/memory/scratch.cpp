#include "attn/memory/scratch.hpp"

#include <algorithm>
#include <new>

#include "attn/parallel/lists.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

#ifndef __wasm__
namespace {
Workspace* listed = nullptr;
}

void Workspace::enter_list() {
  if (listed_) return;
  const auto lock = parallel::lock_lists();
  listed_ = true;
  next_ = listed;
  if (listed != nullptr) listed->before_ = this;
  listed = this;
}

Workspace::~Workspace() {
  if (!listed_) return;
  const auto lock = parallel::lock_lists();
  (before_ != nullptr ? before_->next_ : listed) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

void Workspace::release_all() {
  const auto lock = parallel::lock_lists();
  for (Workspace* workspace = listed; workspace != nullptr; workspace = workspace->next_) {
    workspace->released_.store(true);
    if (workspace->taken_.test_and_set()) continue;
    workspace->released_.store(false);
    workspace->block_ = AlignedFloats();
    workspace->taken_.clear();
  }
}
#endif

Scratch::Scratch(Workspace* workspace)
    : workspace_(workspace != nullptr && !workspace->taken_.test_and_set(std::memory_order_acquire) ? workspace : nullptr) {}

Scratch::~Scratch() {
  if (workspace_ == nullptr) return;
  AlignedFloats& block = workspace_->block_;
  if (most_ > block.size()) {
    more_.clear();
    block = AlignedFloats();  // first, so that both never exist at the same time
    try {
#ifndef __wasm__
      workspace_->enter_list();
#endif
      block = AlignedFloats(most_);
    } catch (const std::bad_alloc&) {
      // The next call allocates in pieces again.
    }
  }
#ifdef __wasm__
  workspace_->taken_.clear(std::memory_order_release);
#else
  do {
    if (workspace_->released_.exchange(false)) block = AlignedFloats();
    workspace_->taken_.clear();
    // A release between these two statements found the workspace taken.
  } while (workspace_->released_.load() && !workspace_->taken_.test_and_set());
#endif
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
