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

namespace attn::parallel {

// How long a waiting thread spins before it sleeps: usually work comes sooner. A longer spin would keep the caller from
// running if both share a core.
inline constexpr std::chrono::microseconds kSpin{30};

/// Runs inside a task of a multi-threaded run use only its thread.
enum class CallDepth : std::uint8_t { nothing, body, task };
inline constinit thread_local CallDepth call_depth = CallDepth::nothing;

class Entered {
 public:
  explicit Entered(CallDepth now) : before_(std::exchange(call_depth, std::max(call_depth, now))) {}
  ~Entered() { call_depth = before_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  CallDepth before_;
};

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// sleep_on() sleeps while the flag is 1.
#ifdef __wasm__
// Emscripten's std::atomic::wait would poll forever, with pauses of up to some ms.
[[gnu::noinline]] inline void sleep_on([[maybe_unused]] std::atomic<int>& flag) {
#ifdef __wasm_atomics__
  // If a trap ends a worker thread, its tasks never end. The glue records the crash, and yielding then throws.
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

/// Lets one thread wait: others change what ready() reads, then call wake(). All of this must be sequentially
/// consistent: either the sleeper sees the change or its maker sees the sleeper. A late wake() only causes another call
/// of ready().
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

/// Tasks of consecutive runs. One word holds the numbers of tasks left, of busy threads and of threads that may work.
/// Tasks are taken by one change of it, which fails if none are left, so no run waits for a late worker.
class Tasks {
 public:
  static constexpr std::uint64_t kMost = (std::uint64_t{1} << 40) - 1;
  static constexpr unsigned kMostWorkers = (1U << 12) - 1;

  /// The previous run must have ended, and the body must outlive the run.
  void open(std::size_t tasks, unsigned workers, const TaskRef& body) {
    body_ = &body;
    tasks_ = tasks;
    state_.store(workers * kOneWorker + tasks);
  }

  bool is_open_to(unsigned worker) const { return is_open(state_.load(), worker); }

  void take(unsigned worker) {
    State state = state_.load(std::memory_order_relaxed);
    while (is_open(state, worker)) {
      // Large shares need few changes of the word; small ones at the end balance the threads.
      const std::size_t share = std::max<std::size_t>(1, left(state) / (4 * workers_of(state)));
      // Acquires what open() wrote.
      if (!state_.compare_exchange_weak(state, state - share + kOneBusy, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      // The run cannot end before the subtraction below.
      const std::size_t first = tasks_ - left(state);
      for (std::size_t task = first; task < first + share; ++task) (*body_)(task, worker);
      // Releases the tasks' writes to the caller.
      state = state_.fetch_sub(kOneBusy) - kOneBusy;
      if (has_ended(state) && worker != 0) caller_.wake();
    }
  }

  /// For worker 0: waits for tasks that other threads have taken.
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

  alignas(64) std::atomic<State> state_{0};  // own cache line
  alignas(64) const TaskRef* body_ = nullptr;
  std::size_t tasks_ = 0;
  Sleeper caller_;
};

}  // namespace attn::parallel
