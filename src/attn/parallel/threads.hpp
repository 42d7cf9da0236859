#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "attn/parallel/executor.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn::parallel {

class ThreadPool;

/// The calling thread, a pool, or natively an executor. Only close() ends threads, not the destructor, because they may
/// outlive main().
class Threads {
 public:
  unsigned size() const { return size_.load(std::memory_order_relaxed); }

  /// 0 means one per core. Waits for running work. If memory or threads run out, throws and leaves one thread.
  void resize(unsigned count);
  /// Keeps one thread, unless another thread, or a task that calls exit(), is using the pool.
  void close();

  void run(std::size_t tasks, unsigned workers, const TaskRef& body);

#ifndef __wasm__
  /// The executor must outlive this object.
  void use(Executor& executor);
  /// Called in the child of a fork(), where the pool's threads and the lock's holder are gone: the pool can be neither used
  /// nor destroyed, and the next run creates a new one.
  void leave_pool_behind();
  /// Sets the threads of calls from this thread (null: those of the process) and returns the previous ones.
  static Threads* set_current(Threads* threads) noexcept;

  Threads *next = nullptr, *before = nullptr;  ///< see watch_forks
  bool watched = false;
#endif

 private:
  void delete_pool();
  bool has_pool();

  std::mutex mutex_;  // held during a run and while the pool is replaced
  ThreadPool* pool_ = nullptr;
  std::atomic<unsigned> size_{1};
#ifndef __wasm__
  void run_on_executor(std::size_t tasks, unsigned workers, const TaskRef& body);

  Executor* executor_ = nullptr;
#endif
};

}  // namespace attn::parallel
