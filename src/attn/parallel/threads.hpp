#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "attn/parallel/executor.hpp"
#include "attn/parallel/thread_pool.hpp"

// Threads that share the work of calls. Internal.
namespace attn::parallel {

class ThreadPool;

/// Threads of the process or of one context: the calling thread alone, a pool, or in native builds an executor. close()
/// ends them; destroying this object does not, because threads may outlive main().
class Threads {
 public:
  unsigned size() const { return size_.load(std::memory_order_relaxed); }

  /// Sets the number of threads; 0 means one per core. If there is no memory or no thread for them, throws, and the
  /// number is then 1. Waits for running work to finish.
  void resize(unsigned count);
  /// Reduces the number of threads to 1, unless another thread, or a task that calls exit(), is using the pool.
  void close();

  void run(std::size_t tasks, unsigned workers, const TaskRef& body);

#ifndef __wasm__
  /// Uses the threads of an executor from now on. The executor determines their number and must outlive this object.
  void use(Executor& executor);
  /// Called in the child of a fork(). The threads of the pool, and a thread that held the lock, do not exist there, so
  /// the pool can be neither used nor destroyed. The next run creates a new one.
  void leave_pool_behind();
  /// Sets the threads that calls from this thread use from now on (null: those of the process), and returns the
  /// previous ones.
  static Threads* set_current(Threads* threads) noexcept;

  Threads *next = nullptr, *before = nullptr;  ///< see watch_forks
  bool watched = false;
#endif

 private:
  void delete_pool();
  bool has_pool();

  std::mutex mutex_;  // locked during a run and while the pool is being replaced
  ThreadPool* pool_ = nullptr;
  std::atomic<unsigned> size_{1};
#ifndef __wasm__
  void run_on_executor(std::size_t tasks, unsigned workers, const TaskRef& body);

  Executor* executor_ = nullptr;
#endif
};

}  // namespace attn::parallel
