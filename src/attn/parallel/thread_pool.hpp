#pragma once

#include <cstddef>
#include <type_traits>

namespace attn {

/// Sets the number of threads that ops share, including the calling thread, for the whole process; the default is 1. It
/// changes speed, never a bit of a result, because work is split by rows and sums are not split. It waits for running
/// work of other threads. The child of a fork() has as many threads as its parent, which start when there is work; a
/// child that a task forks must end by _exit or exec. In native builds a Context has its own threads. Passes on
/// std::system_error if the system has no more threads; the number of threads is then 1.
///
/// @param count  threads; 0 means one per core
/// @throws BUSY inside a task
///
/// @code
/// attn::set_num_threads(2);
/// std::cout << attn::num_threads();  // 2
/// @endcode
void set_num_threads(unsigned count);
/// Returns the number of threads of the current context, or of the process if there is none.
/// @code
/// attn::Context context({.num_threads = 3});
/// attn::Context::Scope scope(context);
/// std::cout << attn::num_threads();  // 3
/// @endcode
unsigned num_threads();

namespace parallel {

/// Reference to a callable (task, worker) that outlives the call and throws nothing. It may run in any thread.
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

/// Returns the number of workers that a run over `tasks` tasks of about `cost` multiply-adds in total will use, which
/// determines the size of scratch memory.
unsigned workers_for(std::size_t tasks, double cost);

/// Calls body(task, worker) once for each task in [0, tasks), worker < workers; no two threads have the same worker
/// number. Threads take tasks dynamically, so any worker may run any task; bodies must write to disjoint memory.
/// Returns as soon as all tasks are done: the caller (worker 0) runs the tasks that no other thread takes, and does not
/// wait for threads that took none. A nested call, or a call from a second user thread while the pool is in use, runs
/// in the caller alone. The only exceptions are those from the executor of a context. In a dry run no body is called.
void run(std::size_t tasks, unsigned workers, TaskRef body);

}  // namespace parallel
}  // namespace attn
