#pragma once

#include <cstdint>
#include <utility>

// Lets a binding end a long call, for example on Ctrl-C. Internal, native only.
namespace attn::detail {

enum class Interruptible : std::uint8_t {
  between_runs,   ///< no run() ends early, so no optimiser takes half a step
  between_tasks,  ///< also within a run() of this thread alone, for calls whose results are discarded
};

/// Calls check(object) repeatedly while this thread computes; an exception ends the attn function without a result.
/// Only the innermost is called.
class Interruption {
 public:
  using Check = void (*)(void* object);

  Interruption(Interruptible where, Check check, void* object) noexcept
      : where_(where), check_(check), object_(object), before_(std::exchange(now, this)) {}
  ~Interruption() { now = before_; }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static void poll() {
    if (now != nullptr) now->check_(now->object_);
  }
  static bool may_end_runs() { return now != nullptr && now->where_ == Interruptible::between_tasks; }

 private:
  friend class Uninterrupted;
  static inline constinit thread_local Interruption* now = nullptr;

  Interruptible where_;
  Check check_;
  void* object_;
  Interruption* before_;
};

/// Suspends Interruptions of this thread, so that weights are not left half-written.
class Uninterrupted {
 public:
  Uninterrupted() noexcept : before_(std::exchange(Interruption::now, nullptr)) {}
  ~Uninterrupted() { Interruption::now = before_; }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

 private:
  Interruption* before_;
};

}  // namespace attn::detail
