#include "attn/parallel/executor.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "attn/parallel/tasks.hpp"
#include "attn/parallel/threads.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {
namespace parallel {
namespace {

/// Suspends the context: a waiting scheduler may run unrelated work of its user, which must not use it.
class OutsideContext {
 public:
  OutsideContext() = default;
  ~OutsideContext() {
    Threads::set_current(threads_);
    detail::put_memory_limit_in_force(memory_limit_);
  }
  OutsideContext(const OutsideContext&) = delete;
  OutsideContext& operator=(const OutsideContext&) = delete;

 private:
  Threads* const threads_ = Threads::set_current(nullptr);
  const std::uint64_t* const memory_limit_ = detail::put_memory_limit_in_force(nullptr);
};

}  // namespace

/// Lives until the last thread releases it, so a late thread finds it without tasks.
class SharedRun {
 public:
  SharedRun(std::size_t tasks, unsigned workers, const TaskRef& body) : workers_(workers) { tasks_.open(tasks, workers, body); }

  void work() {
    unsigned worker = 0;
    if (std::this_thread::get_id() != caller_) {
      if (came_.load(std::memory_order_relaxed) + 1 >= workers_) return;  // so that the counter cannot overflow
      worker = came_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (worker >= workers_) return;
    }
    const Entered task(CallDepth::task);
    const detail::FloatEnvironment environment;
    tasks_.take(worker);
  }

  void finish() {
    work();
    tasks_.wait();
  }

 private:
  Tasks tasks_;
  const std::thread::id caller_ = std::this_thread::get_id();
  const unsigned workers_;
  std::atomic<unsigned> came_{0};
};

void Threads::use(Executor& executor) {
  executor_ = &executor;
  size_.store(std::clamp(executor.workers(), 1U, Tasks::kMostWorkers), std::memory_order_relaxed);
}

void Threads::run_on_executor(std::size_t tasks, unsigned workers, const TaskRef& body) {
  std::shared_ptr<SharedRun> run;
  try {
    run = std::make_shared<SharedRun>(tasks, workers, body);
  } catch (const std::bad_alloc&) {
    for (std::size_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  try {
    const OutsideContext outside;
    executor_->run(workers, Executor::Work(run));
  } catch (...) {
    // Half an optimiser step would be worse than one thread's time for the rest.
    run->finish();
    throw;
  }
  run->finish();
}

}  // namespace parallel

void Executor::Work::operator()() const noexcept { run_->work(); }

}  // namespace attn
