#include "attn/parallel/thread_pool.hpp"

#ifdef __wasm__
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "attn/parallel/lists.hpp"
#include "attn/parallel/tasks.hpp"
#include "attn/parallel/threads.hpp"
#include "attn/tensor/dry_run.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/interruption.hpp"

namespace attn {
namespace parallel {
namespace {

#if defined(__wasm__) && !defined(__wasm_atomics__)
constexpr bool kHasThreads = false;
#else
constexpr bool kHasThreads = true;
#endif

// Waking a thread takes about 10 µs, as long as 64 K multiply-adds on one core.
constexpr double kCostPerWorker = 65536;

}  // namespace

#if defined(__wasm__) && defined(__wasm_atomics__)
/// std::thread would add 1 kB of exit bookkeeping and messages to the module.
class Thread {
 public:
  template <class Body>
  explicit Thread(Body body) {
    auto own = std::make_unique<Body>(body);
    const auto run = [](void* given) -> void* {
      (*std::unique_ptr<Body>(static_cast<Body*>(given)))();
      return nullptr;
    };
    if (pthread_create(&id_, nullptr, run, own.get()) != 0) throw std::bad_alloc();
    own.release();
  }
  void join() { pthread_join(id_, nullptr); }

 private:
  pthread_t id_;
};
#else
using Thread = std::thread;
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

  void run(std::size_t tasks, unsigned workers, const TaskRef& body) {
    tasks_.open(tasks, workers, body);
    for (unsigned worker = 1; worker < workers; ++worker) sleepers_[worker].wake();
    tasks_.take(0);
    tasks_.wait();
  }

  ThreadPool* left_behind_before = nullptr;  ///< see leave_pool_behind

 private:
  void help(unsigned worker) {
    const Entered task(CallDepth::task);
    const detail::FloatEnvironment environment;  // inherited from the thread that starts this one
    while (true) {
      sleepers_[worker].wait_until([&] { return tasks_.is_open_to(worker) || stopping_.load(); });
      if (stopping_.load()) return;
      tasks_.take(worker);
    }
  }

  void stop() {
    stopping_.store(true);
    for (unsigned worker = 1; worker < size(); ++worker) sleepers_[worker].wake();
    for (Thread& thread : threads_) thread.join();
  }

  Tasks tasks_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Sleeper[]> sleepers_;
  std::vector<Thread> threads_;
};

namespace {

constinit Threads of_process;
struct CloseAtExit {
  ~CloseAtExit() { of_process.close(); }
} close_at_exit;

#ifdef __wasm__
Threads& here() { return of_process; }
#else
constinit thread_local Threads* in_force = nullptr;
Threads& here() { return in_force != nullptr ? *in_force : of_process; }

ThreadPool* left_behind = nullptr;  // reachable for leak checkers
#endif

}  // namespace

void Threads::resize(unsigned count) {
  if constexpr (!kHasThreads) return;
  if (count == 0) count = std::max(1U, std::thread::hardware_concurrency());
#ifndef __wasm__
  if (count > Tasks::kMostWorkers) detail::fail(ErrorCode::config, "set_num_threads", "count", {"a number from 0 to ", Tasks::kMostWorkers}, {count});
#endif
  const std::lock_guard lock(mutex_);
  if (count == size()) return;
  delete_pool();
  if (count == 1) return;
#ifndef __wasm__
  watch_forks(*this);
#endif
  pool_ = new ThreadPool(count);
  size_.store(count, std::memory_order_relaxed);
}

void Threads::close() {
  if (call_depth == CallDepth::task) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) delete_pool();
}

void Threads::delete_pool() {
  size_.store(1, std::memory_order_relaxed);
  if constexpr (kHasThreads) delete std::exchange(pool_, nullptr);
}

void Threads::run(std::size_t tasks, unsigned workers, const TaskRef& body) {
  if (kHasThreads && workers > 1 && tasks > 1 && std::uint64_t{tasks} <= Tasks::kMost && call_depth != CallDepth::task) {
#ifndef __wasm__
    if (executor_ != nullptr) return run_on_executor(tasks, std::min({workers, size(), Tasks::kMostWorkers}), body);
#endif
    const detail::FloatEnvironment environment;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && has_pool()) {
      const Entered task(CallDepth::task);
      return pool_->run(tasks, std::min({workers, pool_->size(), Tasks::kMostWorkers}), body);
    }
  }
#ifndef __wasm__
  const bool checks = call_depth == CallDepth::nothing && detail::Interruption::may_end_runs();
  // A check reads the clock, which takes as long as a short row.
  const std::size_t each = tasks < 4096 ? 1 : 16;
#endif
  const Entered in_body(CallDepth::body);
  const detail::FloatEnvironment environment;
  for (std::size_t task = 0; task < tasks; ++task) {
#ifndef __wasm__
    if (checks && task % each == 0) detail::Interruption::poll();
#endif
    body(task, 0);
  }
}

#ifdef __wasm__
bool Threads::has_pool() { return pool_ != nullptr; }
#else
bool Threads::has_pool() {
  if (pool_ != nullptr || size() == 1) return pool_ != nullptr;
  // The first run in the child of a fork().
  try {
    pool_ = new ThreadPool(size());
  } catch (const std::exception&) {
    size_.store(1, std::memory_order_relaxed);  // the caller runs all tasks
  }
  return pool_ != nullptr;
}

void Threads::leave_pool_behind() {
  new (&mutex_) std::mutex;  // another thread may have locked it
  if (pool_ == nullptr) return;
  pool_->left_behind_before = left_behind;
  left_behind = std::exchange(pool_, nullptr);
}

Threads* Threads::set_current(Threads* threads) noexcept { return std::exchange(in_force, threads); }
#endif

unsigned workers_for(std::size_t tasks, double cost) {
  const unsigned most = here().size();
  if (most == 1 || call_depth == CallDepth::task) return 1;
  const double worth = std::min({static_cast<double>(tasks), cost / kCostPerWorker, static_cast<double>(most)});
  return std::max(1U, static_cast<unsigned>(worth));
}

void run(std::size_t tasks, unsigned workers, TaskRef body) {
  if (detail::counts()) return;
#ifndef __wasm__
  if (call_depth == CallDepth::nothing) detail::Interruption::poll();
#endif
  here().run(tasks, workers, body);
}

}  // namespace parallel

void set_num_threads(unsigned count) {
  if (parallel::call_depth != parallel::CallDepth::nothing)
    detail::fail(ErrorCode::busy, "set_num_threads", "the caller", {"a thread outside the pool"}, {"a task"}, "The pool waits for its tasks to end");
  parallel::of_process.resize(count);
}

unsigned num_threads() { return parallel::here().size(); }

}  // namespace attn
