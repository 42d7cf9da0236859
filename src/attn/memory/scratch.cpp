#include "attn/memory/scratch.hpp"

#include <algorithm>
#include <new>
#include <utility>

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

void Workspace::give_back() {
#ifdef __wasm__
  taken_.clear(std::memory_order_release);
#else
  do {
    if (released_.exchange(false)) block_ = AlignedFloats();
    taken_.clear();
    // A release between these two statements found the workspace taken.
  } while (released_.load() && take());
#endif
}

/// Returns whether the next Scratch may use it.
bool MemoryCheck::count(Workspace& workspace) {
  const auto is_known = [&] {
    const Workspace* known = workspaces_;
    while (known != nullptr && known != &workspace) known = known->next_counted_;
    return known != nullptr;
  };
  if (is_known()) return !std::exchange(workspace.is_counting_, true);
  if (!workspace.take()) return false;
  workspace.counted_ = 0;
  workspace.is_counting_ = true;
  workspace.next_counted_ = std::exchange(workspaces_, &workspace);
  return true;
}

void MemoryCheck::finish(std::string_view what) {
  end();
  check(what);
  for (Workspace* workspace = workspaces_; workspace != nullptr; workspace = workspace->next_counted_) {
    if (workspace->counted_ <= workspace->block_.size()) continue;
#ifndef __wasm__
    workspace->enter_list();
#endif
    workspace->block_ = AlignedFloats();  // first, so that both never exist at the same time
    workspace->block_ = AlignedFloats(workspace->counted_);
  }
}

MemoryCheck::~MemoryCheck() {
  end();
  while (workspaces_ != nullptr) {
    Workspace& workspace = *std::exchange(workspaces_, workspaces_->next_counted_);
    workspace.give_back();
  }
}

Scratch::Scratch(Workspace* workspace) : workspace_(workspace) {
  if (workspace == nullptr) return;
  DryRun* const run = DryRun::current();
  if (!(run != nullptr ? static_cast<MemoryCheck*>(run)->count(*workspace) : workspace->take())) workspace_ = nullptr;
}

Scratch::~Scratch() {
  shrink(0);
  if (workspace_ == nullptr) return;
  if (counts())
    workspace_->is_counting_ = false;
  else
    workspace_->give_back();
}

float* Scratch::take(std::uint64_t rows, std::uint64_t width) {
  constexpr std::uint64_t kLine = 16, kMost = UINT64_MAX / 8;
  std::uint64_t size = saturating_product(rows, width);
  size = size > kMost ? kMost : (size + kLine - 1) / kLine * kLine;
  const std::uint64_t first = used_;
  used_ += size;
  if (counts()) return count(size);
  if (workspace_ != nullptr && more_.empty() && used_ <= workspace_->block_.size()) return workspace_->block_.data() + first;
  try {
    if (size >= kMost) throw std::bad_alloc();  // sanitizers end the program at such a size
    return more_.emplace_back(size).data();
  } catch (...) {
    used_ = first;
    throw;
  }
}

/// A workspace has the most floats of all its scratches during the whole call; other memory is freed with its Frame.
float* Scratch::count(std::uint64_t size) {
  DryRun& run = *DryRun::current();
  if (workspace_ == nullptr) return static_cast<float*>(run.add(saturating_product(size, sizeof(float))));
  const std::uint64_t more = used_ > workspace_->counted_ ? used_ - workspace_->counted_ : 0;
  workspace_->counted_ += more;
  return static_cast<float*>(run.add(saturating_product(more, sizeof(float)), true));
}

void Scratch::shrink(std::uint64_t used) {
  if (counts() && workspace_ == nullptr) DryRun::current()->remove(saturating_product(used_ - used, sizeof(float)));
  used_ = used;
}

Scratch::Frame::~Frame() {
  scratch_.more_.resize(more_);
  scratch_.shrink(used_);
}

void fill_zeros(float* values, std::size_t size) {
  if (!counts()) std::fill_n(values, size, 0.0F);
}

void copy_values(const float* from, std::size_t size, float* to) {
  if (!counts()) std::copy_n(from, size, to);
}

const float* without_gaps(const TensorView& x, Scratch& scratch) {
  if (is_contiguous(x.shape, x.strides)) return x.data;
  const Rows rows(x);
  float* const copy = scratch.take(rows.count(), rows.width());
  if (counts()) return copy;
  for (std::size_t row = 0; row < rows.count(); ++row) std::copy_n(rows[row], rows.width(), copy + row * rows.width());
  return copy;
}

}  // namespace attn::detail
