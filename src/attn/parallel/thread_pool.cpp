#include "attn/parallel/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "attn/tensor/error.hpp"

#if (defined(__unix__) || defined(__APPLE__)) && !defined(__wasm__)
#define ATTN_CAN_FORK
#include <pthread.h>
#endif

namespace attn {
namespace parallel {
namespace {

// Waking a thread costs some 10 µs, which is what one core does in about 64 K multiply-adds.
constexpr double kCostPerWorker = 65536;

// Who waits looks for this long before it sleeps: the next op of a forward, and the end of another's tasks, come sooner.
// Longer, and a helper that the system put on the caller's core keeps the caller from it.
constexpr std::chrono::microseconds kSpin{30};

/// What this thread is in the middle of. Runs inside a task of the pool are done by its thread alone.
enum class Inside : std::uint8_t { nothing, body, task };
thread_local Inside inside = Inside::nothing;

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
void relax() {
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
void sleep_on([[maybe_unused]] std::atomic<int>& flag) {
#ifdef __wasm_atomics__
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&flag), 1, -1);
#endif
}
void wake_from([[maybe_unused]] std::atomic<int>& flag) {
#ifdef __wasm_atomics__
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&flag), 1);
#endif
}
#else
void sleep_on(std::atomic<int>& flag) { flag.wait(1); }
void wake_from(std::atomic<int>& flag) { flag.notify_one(); }
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

// A run is one word: how many of its tasks nobody has taken yet, how many threads are at work on some, how many may be.
// Taking tasks is one change of this word, which succeeds only while some are left: a helper that comes late finds none, or
// those of a later run, and nobody waits for it.
using State = std::uint64_t;
constexpr int kBusyShift = 40, kWorkersShift = 52;
constexpr State kOneBusy = State{1} << kBusyShift, kOneWorker = State{1} << kWorkersShift;
constexpr State kMostTasks = kOneBusy - 1, kMostWorkers = (State{1} << 12) - 1;

std::size_t left(State state) { return static_cast<std::size_t>(state & kMostTasks); }
unsigned workers_of(State state) { return static_cast<unsigned>(state >> kWorkersShift); }
bool is_open(State state, unsigned worker) { return left(state) > 0 && worker < workers_of(state); }
bool has_ended(State state) { return state % kOneWorker == 0; }

/// What a task threw, of several the first, for who called run().
#ifdef __wasm__
// Bodies there are attn's own, which throw nothing, and an exception_ptr is a kilobyte.
struct FirstError {
  template <class F>
  bool keep_of(F f) {
    f();
    return true;
  }
  void rethrow() {}
};
#else
class FirstError {
 public:
  /// Whether f came to its end.
  template <class F>
  bool keep_of(F f) {
    try {
      f();
      return true;
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
      return false;
    }
  }
  void rethrow() {
    if (failed_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};
#endif

class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads) : sleepers_(std::make_unique<Sleeper[]>(threads)) {
    threads_.reserve(threads - 1);
    try {
      for (unsigned worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { help(worker); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~ThreadPool() { stop(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }

  void run(std::size_t tasks, unsigned workers, TaskRef body) {
    body_ = &body;
    tasks_ = tasks;
    state_.store(workers * kOneWorker + tasks);
    for (unsigned worker = 1; worker < workers; ++worker) sleepers_[worker].wake();
    take_tasks(0);
    sleepers_[0].wait_until([this] { return has_ended(state_.load()); });
    error_.rethrow();
  }

  ThreadPool* left_behind_before = nullptr;  ///< see leave_pool_behind

 private:
  void take_tasks(unsigned worker) {
    State state = state_.load(std::memory_order_relaxed);
    while (is_open(state, worker)) {
      // Large shares first, which cost few changes of the word, and small ones in the end, so that all end at about the same time.
      const std::size_t share = std::max<std::size_t>(1, left(state) / (4 * workers_of(state)));
      // Acquire: what run() wrote before it opened the state.
      if (!state_.compare_exchange_weak(state, state - share + kOneBusy, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      // From here on to the subtraction this run cannot end, so body_ and tasks_ stay.
      const std::size_t first = tasks_ - left(state);
      const bool done = error_.keep_of([&] {
        for (std::size_t task = first; task < first + share; ++task) (*body_)(task, worker);
      });
      if (!done) state_.fetch_and(~kMostTasks);  // what nobody has begun is left out
      // Releases what the tasks wrote, to the caller who sees the end.
      state = state_.fetch_sub(kOneBusy) - kOneBusy;
      if (has_ended(state) && worker != 0) sleepers_[0].wake();
    }
  }

  void help(unsigned worker) {
    const Entered task(Inside::task);
    while (true) {
      sleepers_[worker].wait_until([&] { return is_open(state_.load(), worker) || stopping_.load(); });
      if (stopping_.load()) return;
      take_tasks(worker);
    }
  }

  void stop() {
    stopping_.store(true);
    for (unsigned worker = 1; worker < size(); ++worker) sleepers_[worker].wake();
    for (std::thread& thread : threads_) thread.join();
  }

  alignas(64) std::atomic<State> state_{0};  // in a cache line of its own
  alignas(64) const TaskRef* body_ = nullptr;
  std::size_t tasks_ = 0;
  std::atomic<bool> stopping_{false};
  FirstError error_;
  std::unique_ptr<Sleeper[]> sleepers_;  // one for each worker
  std::vector<std::thread> threads_;
};

// Held while a run is going on or the pool is being replaced.
std::mutex pool_mutex;
ThreadPool* pool = nullptr;  // none: one thread
std::atomic<unsigned> pool_size{1};

void delete_pool() {
  pool_size.store(1, std::memory_order_relaxed);
  delete std::exchange(pool, nullptr);
}

/// At the end of the program. A run that another thread, or a task that calls exit(), is in the middle of keeps its pool.
struct DeleteAtExit {
  ~DeleteAtExit() {
    if (inside == Inside::task) return;
    const std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (lock) delete_pool();
  }
} delete_at_exit;

#ifdef ATTN_CAN_FORK
/// In the child of a fork(), which has none of the pool's threads, nor whoever held the lock: nothing of the pool can be
/// used or destroyed there. It stays where leak checkers see it.
ThreadPool* left_behind = nullptr;
void leave_pool_behind() {
  new (&pool_mutex) std::mutex;
  pool_size.store(1, std::memory_order_relaxed);
  if (pool == nullptr) return;
  pool->left_behind_before = left_behind;
  left_behind = std::exchange(pool, nullptr);
}
void watch_forks() {
  static const bool watched = [] {
    if (pthread_atfork(nullptr, nullptr, leave_pool_behind) != 0) throw std::bad_alloc();
    return true;
  }();
  static_cast<void>(watched);
}
#else
void watch_forks() {}
#endif

}  // namespace

unsigned workers_for(std::size_t tasks, double cost) {
  const unsigned most = pool_size.load(std::memory_order_relaxed);
  if (most == 1 || inside == Inside::task) return 1;
  const double worth = std::min({static_cast<double>(tasks), cost / kCostPerWorker, static_cast<double>(most)});
  return std::max(1U, static_cast<unsigned>(worth));
}

void run(std::size_t tasks, unsigned workers, TaskRef body) {
  if (workers > 1 && tasks > 1 && State{tasks} <= kMostTasks && inside != Inside::task) {
    const std::unique_lock lock(pool_mutex, std::try_to_lock);
    if (lock && pool) {
      const Entered task(Inside::task);
      return pool->run(tasks, std::min({workers, pool->size(), static_cast<unsigned>(kMostWorkers)}), body);
    }
  }
  const Entered in_body(Inside::body);
  for (std::size_t task = 0; task < tasks; ++task) body(task, 0);
}

}  // namespace parallel

void set_num_threads(unsigned count) {
  if (parallel::inside != parallel::Inside::nothing)
    fail(ErrorCode::busy, "set_num_threads", "the caller", {"none: the pool waits for its end"}, {"a task"});
  if (count == 0) count = std::max(1U, std::thread::hardware_concurrency());
  const std::lock_guard lock(parallel::pool_mutex);
  if (count == parallel::pool_size.load(std::memory_order_relaxed)) return;
  parallel::delete_pool();
  if (count == 1) return;
  parallel::watch_forks();
  parallel::pool = new parallel::ThreadPool(count);
  parallel::pool_size.store(count, std::memory_order_relaxed);
}

unsigned num_threads() { return parallel::pool_size.load(std::memory_order_relaxed); }

}  // namespace attn
