#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/dry_run.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {

/// Memory that forwards of a layer reuse. check_memory() lets it grow to what a call needs, and it is freed with the layer
/// or, natively, by release_all(). Moving a layer does not move it.
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
  friend class MemoryCheck;
  friend class Scratch;
  bool take() { return !taken_.test_and_set(std::memory_order_acquire); }
  void give_back();

  AlignedFloats block_;
  std::atomic_flag taken_;  // by a forward or a dry run; concurrent ones allocate their own memory
  // In a dry run: floats that it needs, whether a Scratch has it, and the next workspace of the dry run.
  std::uint64_t counted_ = 0;
  bool is_counting_ = false;
  Workspace* next_counted_ = nullptr;
#ifndef __wasm__
  void enter_list();

  std::atomic<bool> released_ = false;             // called while taken
  Workspace *next_ = nullptr, *before_ = nullptr;  // list of workspaces that have had memory
  bool listed_ = false;
#endif
};

/// The dry run of check_memory().
class MemoryCheck : public DryRun {
 public:
  using DryRun::DryRun;
  ~MemoryCheck();
  void finish(std::string_view what);

 private:
  friend class Scratch;
  bool count(Workspace& workspace);

  Workspace* workspaces_ = nullptr;
};

/// Runs a call once to count its memory. Throws MEMORY, with `op` and `what` in the message, if that exceeds memory_limit();
/// otherwise workspaces have room for the call. In `call`, results are counted(). Inside another dry run it does nothing,
/// because that one counts the call itself.
template <class Call>
void check_memory(std::string_view op, const Call& call, std::string_view what = "the result with its work space") {
  if (counts()) return;
  MemoryCheck check(op);
  call();
  check.finish(what);
}

/// Uninitialised memory for one call, allocated like a stack. In a dry run it is only counted.
class Scratch {
 public:
  explicit Scratch(Workspace* workspace = nullptr);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// The rows · width floats start at a cache line and are valid until the current Frame ends.
  float* take(std::uint64_t rows, std::uint64_t width = 1);
  template <class T>
  T* take_as(std::uint64_t count) {
    return reinterpret_cast<T*>(take(count, sizeof(T) / sizeof(float)));
  }

  /// Frees everything taken during its lifetime.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), used_(scratch.used_), more_(scratch.more_.size()) {}
    ~Frame();
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::uint64_t used_;
    std::size_t more_;
  };

 private:
  float* count(std::uint64_t size);
  void shrink(std::uint64_t used);

  Workspace* workspace_;
  std::vector<AlignedFloats> more_;
  std::uint64_t used_ = 0;  // floats, in the block and in more_
};

/// Nothing in a dry run.
void fill_zeros(float* values, std::size_t size);
void copy_values(const float* from, std::size_t size, float* to);

/// Row-major numbers of x without gaps: in place, or a copy in the scratch.
const float* without_gaps(const TensorView& x, Scratch& scratch);

}  // namespace attn::detail
