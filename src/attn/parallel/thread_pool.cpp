#include "attn/parallel/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace attn {
namespace parallel {
namespace {

// Waking a thread costs some 10 µs, which is what one core does in about 64 K multiply-adds.
constexpr double kCostPerWorker = 65536;

// A worker that finds nothing to do looks for this long before it sleeps: the next op of a forward comes sooner.
constexpr std::chrono::microseconds kSpin{40};

class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads) {
    threads_.reserve(threads - 1);
    try {
      for (unsigned worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { work(worker); });
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
    next_.store(0, std::memory_order_relaxed);
    helpers_ = workers - 1;
    busy_.store(static_cast<unsigned>(threads_.size()), std::memory_order_relaxed);
    epoch_.fetch_add(1);  // sequentially consistent with sleepers_: either we see a sleeper or it sees the epoch
    if (sleepers_.load() > 0) {
      const std::lock_guard lock(mutex_);
      wake_.notify_all();
    }
    take_tasks(0);
    // Helpers hold tasks that have begun; the end is near, so this never sleeps.
    while (busy_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  }

 private:
  void take_tasks(unsigned worker) {
    for (std::size_t task = next_.fetch_add(1, std::memory_order_relaxed); task < tasks_; task = next_.fetch_add(1, std::memory_order_relaxed))
      (*body_)(task, worker);
  }

  void work(unsigned worker) {
    std::uint32_t seen = 0;
    while (true) {
      wait_for_change(seen);
      seen = epoch_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_relaxed)) return;
      if (worker <= helpers_) take_tasks(worker);
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  void wait_for_change(std::uint32_t seen) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (epoch_.load(std::memory_order_acquire) == seen) {
      if (std::chrono::steady_clock::now() < until) continue;
      std::unique_lock lock(mutex_);
      sleepers_.fetch_add(1);
      wake_.wait(lock, [&] { return epoch_.load() != seen; });
      sleepers_.fetch_sub(1);
      return;
    }
  }

  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1);
    {
      const std::lock_guard lock(mutex_);
      wake_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::vector<std::thread> threads_;
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<unsigned> sleepers_{0};
  std::atomic<unsigned> busy_{0};
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stopping_{false};
  const TaskRef* body_ = nullptr;
  std::size_t tasks_ = 0;
  unsigned helpers_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
};

// Held while a run is going on or the pool is being replaced.
std::mutex pool_mutex;
std::unique_ptr<ThreadPool> pool;  // null: one thread
std::atomic<unsigned> pool_size{1};
thread_local bool inside_task = false;

void run_alone(std::size_t tasks, TaskRef body) {
  for (std::size_t task = 0; task < tasks; ++task) body(task, 0);
}

}  // namespace

unsigned workers_for(std::size_t tasks, double cost) {
  const unsigned most = pool_size.load(std::memory_order_relaxed);
  if (most == 1 || inside_task) return 1;
  const double worth = std::min({static_cast<double>(tasks), cost / kCostPerWorker, static_cast<double>(most)});
  return std::max(1U, static_cast<unsigned>(worth));
}

void run(std::size_t tasks, unsigned workers, TaskRef body) {
  if (workers <= 1 || tasks <= 1 || inside_task) return run_alone(tasks, body);
  const std::unique_lock lock(pool_mutex, std::try_to_lock);
  if (!lock || !pool) return run_alone(tasks, body);
  const auto marked = [&](std::size_t task, unsigned worker) {
    inside_task = true;
    body(task, worker);
    inside_task = false;
  };
  pool->run(tasks, std::min(workers, pool->size()), marked);
}

}  // namespace parallel

void set_num_threads(unsigned count) {
  if (count == 0) count = std::max(1U, std::thread::hardware_concurrency());
  const std::lock_guard lock(parallel::pool_mutex);
  if (count == parallel::pool_size.load(std::memory_order_relaxed)) return;
  parallel::pool.reset();
  parallel::pool_size.store(1, std::memory_order_relaxed);
  if (count == 1) return;
  parallel::pool = std::make_unique<parallel::ThreadPool>(count);
  parallel::pool_size.store(count, std::memory_order_relaxed);
}

unsigned num_threads() { return parallel::pool_size.load(std::memory_order_relaxed); }

}  // namespace attn
