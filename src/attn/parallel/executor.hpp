#pragma once

#include <memory>
#include <utility>

namespace attn {
namespace parallel {
class SharedRun;
}

/// Interface to your own threads, for a Context to use instead of a pool. Any scheduler can implement it, and results
/// have the same bits. Several threads may call it at once.
/// @code
/// struct TwoThreads : attn::Executor {
///   unsigned workers() const override { return 2; }
///   void run(unsigned, const Work& work) override {
///     std::jthread other(work);
///     work();
///   }
/// };
/// attn::Context context({.executor = std::make_shared<TwoThreads>()});
/// std::cout << context.num_threads();  // 2
/// @endcode
class Executor {
 public:
  /// A share of the work of one call. Takes tasks until none are left, and throws nothing. Copies refer to the same
  /// work.
  class Work {
   public:
    explicit Work(std::shared_ptr<parallel::SharedRun> run) : run_(std::move(run)) {}
    /// Does a share of the work, and returns when no task is left to begin.
    void operator()() const noexcept;

   private:
    std::shared_ptr<parallel::SharedRun> run_;
  };

  virtual ~Executor() = default;
  /// Returns how many threads may work on a call, including the calling thread. It is called once, when a context is
  /// created.
  virtual unsigned workers() const = 0;
  /// Calls work() up to `count` times, if possible in several threads at once: in a parallel loop that waits for its
  /// end, or by adding `count` - 1 copies to a queue without waiting. If calls come late, more often or never, the
  /// calling thread does the rest and waits only for work that has begun. If run() throws, the tasks are completed
  /// first (so that no optimiser takes half a step), and the exception leaves the attn function, which then has no
  /// result.
  virtual void run(unsigned count, const Work& work) = 0;
};

}  // namespace attn
