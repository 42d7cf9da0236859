#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <shared_mutex>
#include <string_view>
#include <utility>

#include "attn/context.hpp"

// How calls run: without the interpreter's lock, on so many threads, and not beside what changes their object.
namespace attn::python {

namespace nb = nanobind;

/// Threads of a call, a model or a layer that says nothing else. Default 1; 0: one per core.
void set_num_threads(unsigned count);
unsigned get_num_threads();

/// So many threads, or as many as the process's calls have. Contexts are made when they are first used, so that a program has no threads
/// before it computes, and those of the last few counts are kept. Throws CONFIG for too many. With the interpreter's lock.
Context context_of(std::optional<unsigned> threads);

/// Without the interpreter's lock. Where the interpreter ends meanwhile, the thread waits for the end of the process: to ask for the lock then
/// would be the end of the thread by force (before Python 3.14), which C++ takes for an error.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// With it again.
class Locked {
 public:
  Locked();

 private:
  std::optional<nb::gil_scoped_acquire> acquired_;
};

/// Has the interpreter say when it ends.
void watch_end();

/// Lets the interpreter act on signals, 50 ms after it last could: what Ctrl-C raises is thrown. Without the interpreter's lock.
class Signals {
 public:
  void check();

 private:
  double last_ = now();
  static double now();
};

/// Who is inside an object: any number of calls that leave it as it is, or one that changes it. Not copied or moved with the object.
class Lock {
 public:
  /// Waits. Throws BUSY where this thread is inside already, by a callback, and either call changes the object.
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

 private:
  mutable std::shared_mutex mutex_;
};

/// A model or layer of a program's.
template <class T>
struct Shared {
  T object;
  std::optional<unsigned> threads = std::nullopt;
  Lock lock = {};

  /// f(object), which leaves it as it is, or changes it. On so many threads, where the call says it.
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

/// f() of no object.
template <class F>
auto run(std::optional<unsigned> threads, F f) {
  const Context context = context_of(threads);
  const Unlocked unlocked;
  const Context::Scope scope(context);
  return f();
}

}  // namespace attn::python
