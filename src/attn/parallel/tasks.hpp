#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "attn/parallel/thread_pool.hpp"

#ifdef __wasm_atomics__
extern "C" void _emscripten_yield(double now);
#endif

// The tasks of a run, and waiting for their end. Internal.
namespace attn::parallel {

// Who waits looks for this long before it sleeps: the next op of a forward, and the end of another's tasks, come sooner.
// Longer, and a helper that the system put on the caller's core keeps the caller from it.
inline constexpr std::chrono::microseconds kSpin{30};

/// What this thread is in the middle of. Runs inside a task of several threads are done by its thread alone.
enum class Inside : std::uint8_t { nothing, body, task };
inline constinit thread_local Inside inside = Inside::nothing;

class Entered {
 public:
  explicit Entered(Inside now) : before_(std::exchange(inside, std::max(inside, now))) {}
  ~Entered() { inside = before_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Inside before_;
};

/// Tells the core that this thread only looks at memory again and again.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Sleeps while the flag is 1, and wakes who does.
#ifdef __wasm__
// Emscripten's std::atomic::wait would look again after pauses of up to some ms, for ever. A module without threads has
// neither these instructions nor sleepers.
[[gnu::noinline]] inline void sleep_on([[maybe_unused]] std::atomic<int>& flag) {
#ifdef __wasm_atomics__
  // A trap ends a helper's thread and leaves its tasks undone. The glue then notes that a thread crashed; in the caller's thread this throws
  // then, after a second at most.
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&flag), 1, 1'000'000'000);
  _emscripten_yield(0);
#endif
}
inline void wake_from([[maybe_unused]] std::atomic<int>& flag) {
#ifdef __wasm_atomics__
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&flag), 1);
#endif
}
#else
inline void sleep_on(std::atomic<int>& flag) { flag.wait(1); }
inline void wake_from(std::atomic<int>& flag) { flag.notify_one(); }
#endif

/// Where one thread waits for what others bring about: they change what ready() reads, then call wake().
/// All here is sequentially consistent, and so must be that change and ready(): either the sleeper sees the change, or who
/// made it sees the sleeper. A wake() that comes too late wakes for nothing, and ready() is asked again.
class alignas(64) Sleeper {
 public:
  template <class Ready>
  void wait_until(Ready ready) {
    if (spin_until(ready)) return;
    while (true) {
      asleep_.store(1);
      if (ready()) break;
      sleep_on(asleep_);
    }
    asleep_.store(0);
  }

  void wake() {
    if (asleep_.load() == 0) return;
    asleep_.store(0);
    wake_from(asleep_);
  }

 private:
  template <class Ready>
  static bool spin_until(Ready ready) {
    if (ready()) return true;
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do
      // Reading the clock is a call out of WebAssembly.
      for (int i = 0; i < 100; ++i) {
        if (ready()) return true;
        relax();
      }
    while (std::chrono::steady_clock::now() < end);
    return false;
  }

  std::atomic<int> asleep_{0};
};

/// The tasks of one run after another. A run is one word: how many of its tasks nobody has taken yet, how many threads are at work on
/// some, how many may be. Taking tasks is one change of this word, which succeeds only while some are left: a helper that comes late
/// finds none, or those of a later run, and nobody waits for it.
class Tasks {
 public:
  static constexpr std::uint64_t kMost = (std::uint64_t{1} << 40) - 1;
  static constexpr unsigned kMostWorkers = (1U << 12) - 1;

  /// Begins a run; the one before has ended. The body outlives it.
  void open(std::size_t tasks, unsigned workers, const TaskRef& body) {
    body_ = &body;
    tasks_ = tasks;
    state_.store(workers * kOneWorker + tasks);
  }

  bool is_open_to(unsigned worker) const { return is_open(state_.load(), worker); }

  /// Does tasks until none is left that nobody has taken.
  void take(unsigned worker) {
    State state = state_.load(std::memory_order_relaxed);
    while (is_open(state, worker)) {
      // Large shares first, which cost few changes of the word, and small ones in the end, so that all end at about the same time.
      const std::size_t share = std::max<std::size_t>(1, left(state) / (4 * workers_of(state)));
      // Acquire: what open() wrote before it opened the state.
      if (!state_.compare_exchange_weak(state, state - share + kOneBusy, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      // From here on to the subtraction this run cannot end, so body_ and tasks_ stay.
      const std::size_t first = tasks_ - left(state);
      for (std::size_t task = first; task < first + share; ++task) (*body_)(task, worker);
      // Releases what the tasks wrote, to the caller who sees the end.
      state = state_.fetch_sub(kOneBusy) - kOneBusy;
      if (has_ended(state) && worker != 0) caller_.wake();
    }
  }

  /// The caller, worker 0, waits here for the end of the tasks that others have taken.
  void wait() {
    caller_.wait_until([this] { return has_ended(state_.load()); });
  }

 private:
  using State = std::uint64_t;
  static constexpr int kBusyShift = 40, kWorkersShift = 52;
  static constexpr State kOneBusy = State{1} << kBusyShift, kOneWorker = State{1} << kWorkersShift;

  static std::size_t left(State state) { return static_cast<std::size_t>(state & kMost); }
  static unsigned workers_of(State state) { return static_cast<unsigned>(state >> kWorkersShift); }
  static bool is_open(State state, unsigned worker) { return left(state) > 0 && worker < workers_of(state); }
  static bool has_ended(State state) { return state % kOneWorker == 0; }

  alignas(64) std::atomic<State> state_{0};  // in a cache line of its own
  alignas(64) const TaskRef* body_ = nullptr;
  std::size_t tasks_ = 0;
  Sleeper caller_;
};

}  // namespace attn::parallel
