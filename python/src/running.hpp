#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>
#include <utility>

#include "attn/context.hpp"
#include "attn/tensor/interruption.hpp"

namespace attn::python {

namespace nb = nanobind;

void set_num_threads(unsigned count);
unsigned get_num_threads();

/// Requires the GIL. Throws CONFIG.
Context context_of(std::optional<unsigned> threads);

/// If the interpreter ends, the thread sleeps forever: Python before 3.14 would kill it on reacquiring the GIL.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Another thread may fork meanwhile.
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

/// os.fork() waits until each call is in a callback or done: a child must not inherit half-written memory or locks of
/// missing threads.
void watch_process();

/// Throws KeyboardInterrupt. Requires Unlocked.
class Signals {
 public:
  /// Between batches and steps; another thread may fork.
  void check();
  void check_inside();

 private:
  double last_ = now();
  static double now();
};

class Interruptions {
 public:
  explicit Interruptions(detail::Interruptible where);

 private:
  Signals signals_;
  std::optional<detail::Interruption> interruption_;
};

/// Many readers or one writer.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// Throws BUSY in a callback of a conflicting call, and in a child of fork() during a change.
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

  /// In a child of fork().
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
  nb::object arguments = nb::none();  ///< dict of the constructor's arguments, from attn/_calls.py

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
