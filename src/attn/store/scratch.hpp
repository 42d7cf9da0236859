#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {

/// Memory that successive forwards of a layer reuse, so that only the first one of a size allocates. It grows to the
/// largest amount used, and is freed with the layer or, natively, by release_all(). Moving a layer does not move it.
class Workspace {
 public:
  Workspace() = default;
  Workspace(Workspace&&) noexcept {}
  Workspace& operator=(Workspace&&) noexcept { return *this; }
#ifndef __wasm__
  ~Workspace();

  /// Frees the memory of all workspaces. If a forward is using one, its memory is freed when the forward ends.
  static void release_all();
#endif

 private:
  friend class Scratch;
  AlignedFloats block_;
  std::atomic_flag taken_;  // set while a forward uses this workspace; concurrent forwards allocate their own memory
#ifndef __wasm__
  void enter_list();

  std::atomic<bool> released_ = false;             // release_all() was called while it was taken
  Workspace *next_ = nullptr, *before_ = nullptr;  // list of the workspaces that have had memory
  bool listed_ = false;
#endif
};

/// Uninitialised memory for one call, allocated like a stack.
class Scratch {
 public:
  explicit Scratch(Workspace* workspace = nullptr);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Returns `size` floats that start at a cache line and are valid until the current Frame ends.
  float* take(std::size_t size);

  /// Frees everything that was taken during its lifetime.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), used_(scratch.used_), more_(scratch.more_.size()) {}
    ~Frame();
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t used_, more_;
  };

 private:
  Workspace* workspace_;
  std::vector<AlignedFloats> more_;  // allocations that did not fit into the block
  std::size_t used_ = 0;             // floats in the block and in more_
  std::size_t most_ = 0;             // maximum of used_
};

/// Returns the numbers of x, row-major and without gaps: in place if possible, otherwise as a copy in the scratch.
const float* without_gaps(const TensorView& x, Scratch& scratch);

}  // namespace attn::detail
