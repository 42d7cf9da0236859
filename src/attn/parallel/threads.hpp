#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "attn/parallel/executor.hpp"
#include "attn/parallel/thread_pool.hpp"

// What calls share their work among. Internal.
namespace attn::parallel {

class ThreadPool;

/// The threads of the process or of one context: the calling one alone, a pool, or natively an executor. Nothing destroys them but
/// close(): threads may outlive main().
class Threads {
 public:
  unsigned size() const { return size_.load(std::memory_order_relaxed); }

  /// So many; one where there is no memory or no thread for them, which is thrown. Waits for running work to finish.
  void resize(unsigned count);
  /// One, but for a pool that another thread, or a task that calls exit(), is in the middle of using.
  void close();

  void run(std::size_t tasks, unsigned workers, const TaskRef& body);

#ifndef __wasm__
  /// From now on those of an executor, which is asked for their number and outlives this.
  void use(Executor& executor);
  /// In the child of a fork(), which has none of the pool's threads, nor whoever held the lock: nothing of the pool can be used or
  /// destroyed there. The next run makes a new one.
  void leave_pool_behind();
  /// What this thread's calls use from now on, null: those of the process. Returns what they used.
  static Threads* put_in_force(Threads* threads) noexcept;

  Threads *next = nullptr, *before = nullptr;  ///< see watch_forks
  bool watched = false;
#endif

 private:
  void delete_pool();
  bool has_pool();

  std::mutex mutex_;  // held while a run is going on or the pool is being replaced
  ThreadPool* pool_ = nullptr;
  std::atomic<unsigned> size_{1};
#ifndef __wasm__
  void run_on_executor(std::size_t tasks, unsigned workers, const TaskRef& body);

  Executor* executor_ = nullptr;
#endif
};

}  // namespace attn::parallel
