#pragma once

#include <cstddef>
#include <type_traits>

namespace attn {

/// Sets the number of threads that ops share, the calling one included, for the whole process; the default is 1. It
/// changes speed, never a bit of a result: work is split by rows, sums are not. It waits for running work of other
/// threads. The child of a fork() has as many as its parent, started when there is work; a child that a task forks
/// must end by _exit or exec. Natively a Context has its own threads. Passes on std::system_error if the system has
/// no more threads; one is left then.
///
/// @param count  threads; 0 means one per core
/// @throws BUSY inside a task
///
/// @code
/// attn::set_num_threads(2);
/// std::cout << attn::num_threads();  // 2
/// @endcode
void set_num_threads(unsigned count);
/// Returns the number of threads of the current context, or else of the process.
unsigned num_threads();

namespace parallel {

/// Reference to a callable (task, worker) that outlives the call and throws nothing: it may run in any thread.
class TaskRef {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, TaskRef> && std::is_nothrow_invocable_v<const F&, std::size_t, unsigned>)
  TaskRef(const F& f)
      : object_(&f), call_([](const void* object, std::size_t task, unsigned worker) noexcept { (*static_cast<const F*>(object))(task, worker); }) {}
  void operator()(std::size_t task, unsigned worker) const noexcept { call_(object_, task, worker); }

 private:
  const void* object_;
  void (*call_)(const void*, std::size_t, unsigned) noexcept;
};

/// Workers that a run over `tasks` tasks of about `cost` multiply-adds in total will use: scratch memory is sized by
/// it.
unsigned workers_for(std::size_t tasks, double cost);

/// Calls body(task, worker) once for each task in [0, tasks), worker < workers; no two threads are the same worker.
/// Threads take tasks as they come, so which worker does which is not fixed; bodies write to disjoint places. Returns
/// as soon as all tasks are done: the caller (worker 0) does those that nobody else takes, and waits for no thread
/// that took none. A nested call, or one from a second user thread while the pool is taken, runs in the caller alone.
/// Throws only what a context's executor throws.
void run(std::size_t tasks, unsigned workers, TaskRef body);

}  // namespace parallel
}  // namespace attn
