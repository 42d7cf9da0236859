#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {

/// Memory that the forwards of one layer use one after another, so that all but the first of a size allocate nothing. It
/// grows to what the largest took and goes with the layer, or natively by release_all(). Moving a layer leaves it behind.
class Workspace {
 public:
  Workspace() = default;
  Workspace(Workspace&&) noexcept {}
  Workspace& operator=(Workspace&&) noexcept { return *this; }
#ifndef __wasm__
  ~Workspace();

  /// Frees the memory of all that there are: at once, or where a forward is using it, when that ends.
  static void release_all();
#endif

 private:
  friend class Scratch;
  AlignedFloats block_;
  std::atomic_flag taken_;  // by a forward of another thread: a second one at the same time has memory of its own
#ifndef __wasm__
  void enter_list();

  std::atomic<bool> released_ = false;             // while it was taken
  Workspace *next_ = nullptr, *before_ = nullptr;  // in the list of those that had memory
  bool listed_ = false;
#endif
};

/// Uninitialised memory of one call, taken like a stack.
class Scratch {
 public:
  explicit Scratch(Workspace* workspace = nullptr);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// That many floats from a cache line on, until the Frame ends in which they were taken.
  float* take(std::size_t size);

  /// Gives back what is taken during its life.
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
  std::vector<AlignedFloats> more_;  // what did not fit into the block
  std::size_t used_ = 0;             // floats, of the block and of more_ together
  std::size_t most_ = 0;             // that used_ ever was
};

/// The numbers of x row-major side by side: where they lie, else a copy in the scratch.
const float* without_gaps(const TensorView& x, Scratch& scratch);

}  // namespace attn::detail
