#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>
#include <utility>

#include "attn/context.hpp"

// Runs calls without the interpreter's lock, on a number of threads, and guards each object against concurrent changes.
namespace attn::python {

namespace nb = nanobind;

/// Threads of calls, models and layers that set no number. Default 1; 0: one per core.
void set_num_threads(unsigned count);
unsigned get_num_threads();

/// The context of this many threads, default that of set_num_threads(). The last few contexts are cached; threads start with the first
/// computation. Throws CONFIG for too many threads. Requires the interpreter's lock.
Context context_of(std::optional<unsigned> threads);

/// Releases the interpreter's lock. If the interpreter ends in the meantime, the thread sleeps until the process ends: before Python 3.14 a
/// thread that asks for the lock then is ended by force, and C++ terminates.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Acquires the interpreter's lock, for a callback. Another thread may fork meanwhile.
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

/// Registers with the interpreter for its end and for os.fork(): a fork waits until every running call is in a callback or done, so that the
/// child finds no half-written memory and no lock of a thread that it does not have.
void watch_process();

/// Lets the interpreter handle signals, at most every 50 ms. Throws the exception of Ctrl-C. Requires that this thread is Unlocked.
class Signals {
 public:
  void check();

 private:
  double last_ = now();
  static double now();
};

/// Lets any number of calls read an object, or one call change it.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// Waits for the object. Throws BUSY if a callback of this thread's own call asks and either call changes the object, and in the child of a
  /// fork that interrupted a change.
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

  /// Discards the calls of threads that a child of fork() does not have.
  void leave_behind(bool is_read_here, bool is_changed_here) const;

 private:
  void acquire(std::string_view op, bool changes) const;
  void release(bool changes) const;

  mutable int readers_ = 0;
  mutable bool is_changing_ = false, is_torn_ = false;
  mutable unsigned forks_ = 0;  ///< forks of the process that leave_behind() has seen
};

/// A model or layer, the number of its threads, and its lock.
template <class T>
struct Shared {
  T object;
  std::optional<unsigned> threads = std::nullopt;
  Lock lock = {};

  /// f(object), which reads or changes the object, on the call's number of threads if it sets one.
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
    return f(self.object);
  }
};

/// f(), for functions without an object.
template <class F>
auto run(std::optional<unsigned> threads, F f) {
  const Context context = context_of(threads);
  const Unlocked unlocked;
  const Context::Scope scope(context);
  return f();
}

}  // namespace attn::python
