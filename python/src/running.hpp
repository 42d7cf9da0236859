#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>
#include <utility>

#include "attn/context.hpp"
#include "attn/tensor/interruption.hpp"

// Calls run without the interpreter's lock (GIL).
namespace attn::python {

namespace nb = nanobind;

void set_num_threads(unsigned count);
unsigned get_num_threads();

/// Returns a context of this many threads, default get_num_threads(). Requires the GIL. Throws CONFIG.
Context context_of(std::optional<unsigned> threads);

/// Releases the GIL. If the interpreter ends meanwhile, the thread sleeps: Python before 3.14 would kill it on reacquiring the GIL.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Acquires the GIL for a callback, during which another thread may fork.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  bool was_running_;
  std::optional<nb::gil_scoped_acquire> acquired_;
};

/// Registers hooks for the interpreter's end and for os.fork(), which waits until each running call is in a callback or done: otherwise the
/// child would inherit half-written memory and locks of threads that it does not have.
void watch_process();

/// Handles signals every 50 ms; throws KeyboardInterrupt. Requires Unlocked.
class Signals {
 public:
  /// Between batches and steps, where another thread may fork.
  void check();
  /// Within a computation of the main thread.
  void check_inside();

 private:
  double last_ = now();
  static double now();
};

/// Lets signals end the computations of this thread.
class Interruptions {
 public:
  explicit Interruptions(detail::Interruptible where);

 private:
  Signals signals_;
  std::optional<detail::Interruption> interruption_;
};

/// Admits any number of calls that read an object, or one that changes it.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// Throws BUSY within a callback of a conflicting call, and in the child of a fork that interrupted a change.
  class Held {
   public:
    Held(const Lock& lock, std::string_view op, bool changes);
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    const Lock& lock_;
    bool changes_, is_outermost_;
  };

  /// Discards the calls of other threads, in the child of a fork.
  void leave_behind(bool is_read_here, bool is_changed_here) const;

 private:
  void acquire(std::string_view op, bool changes) const;
  void release(bool changes) const;

  mutable int readers_ = 0;
  mutable bool is_changing_ = false, is_torn_ = false;
  mutable unsigned forks_ = 0;
};

template <class T>
struct Shared {
  T object;
  std::optional<unsigned> threads = std::nullopt;
  Lock lock = {};
  nb::object arguments = nb::none();  ///< dict of the constructor's, from attn/_calls.py

  template <class F>
  auto read(std::string_view op, F f, std::optional<unsigned> of_call = std::nullopt) const {
    return run(*this, of_call ? of_call : threads, op, false, f);
  }
  template <class F>
  auto change(std::string_view op, F f, std::optional<unsigned> of_call = std::nullopt) {
    return run(*this, of_call ? of_call : threads, op, true, f);
  }

 private:
  template <class Self, class F>
  static auto run(Self& self, std::optional<unsigned> count, std::string_view op, bool changes, F& f) {
    const Context context = context_of(count);
    const Unlocked unlocked;
    const Lock::Held held(self.lock, op, changes);
    const Context::Scope scope(context);
    const Interruptions interruptions(changes ? detail::Interruptible::between_runs : detail::Interruptible::between_tasks);
    return f(self.object);
  }
};

template <class F>
auto run(std::optional<unsigned> threads, F f) {
  const Context context = context_of(threads);
  const Unlocked unlocked;
  const Context::Scope scope(context);
  const Interruptions interruptions(detail::Interruptible::between_tasks);
  return f();
}

}  // namespace attn::python
