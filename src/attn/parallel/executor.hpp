#pragma once

#include <memory>
#include <utility>

namespace attn {
namespace parallel {
class SharedRun;
}

/// Threads that are the caller's: what a Context uses instead of threads of its own. Any scheduler can be one. Results have the same bits
/// whatever it does. May be used by several threads at once.
class Executor {
 public:
  /// A share of what one call has to do: takes parts of it until none is left, and throws nothing. Copies are the same work.
  class Work {
   public:
    explicit Work(std::shared_ptr<parallel::SharedRun> run) : run_(std::move(run)) {}
    void operator()() const noexcept;

   private:
    std::shared_ptr<parallel::SharedRun> run_;
  };

  virtual ~Executor() = default;
  /// How many threads may work on a call, the calling one included. Asked once, when a context is made of it.
  virtual unsigned workers() const = 0;
  /// Calls work() up to `count` times, in several threads at once where there are several: by a parallel loop that waits for its end, or
  /// by `count` - 1 copies put into a queue without waiting. Whatever is called late, more often or not at all, the calling thread does
  /// what nobody else has begun and waits for what somebody has. What this throws comes out of attn's function, which then has no
  /// result, once the tasks of that run are done: by threads that have begun, the rest by the calling thread. So no optimiser takes half a step.
  virtual void run(unsigned count, const Work& work) = 0;
};

}  // namespace attn
