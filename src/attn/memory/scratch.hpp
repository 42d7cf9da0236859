#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {

/// Memory that forwards of a layer reuse. It grows to the largest amount used, and is freed with the layer or,
/// natively, by release_all(). Moving a layer does not move it.
class Workspace {
 public:
  Workspace() = default;
  Workspace(Workspace&&) noexcept {}
  Workspace& operator=(Workspace&&) noexcept { return *this; }
#ifndef __wasm__
  ~Workspace();

  /// Workspaces in use are freed when their forward ends.
  static void release_all();
#endif

 private:
  friend class Scratch;
  AlignedFloats block_;
  std::atomic_flag taken_;  // by a forward; concurrent ones allocate their own memory
#ifndef __wasm__
  void enter_list();

  std::atomic<bool> released_ = false;             // called while taken
  Workspace *next_ = nullptr, *before_ = nullptr;  // list of workspaces that have had memory
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

  /// The floats start at a cache line and are valid until the current Frame ends.
  float* take(std::size_t size);

  /// Frees everything taken during its lifetime.
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
  std::vector<AlignedFloats> more_;
  std::size_t used_ = 0;  // in the block and in more_
  std::size_t most_ = 0;
};

/// Row-major numbers of x without gaps: in place, or a copy in the scratch.
const float* without_gaps(const TensorView& x, Scratch& scratch);

}  // namespace attn::detail
