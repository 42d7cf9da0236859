#include "attn/tensor/interruption.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <thread>

#include "attn/parallel/thread_pool.hpp"

namespace attn::test {
namespace parallel_interruption_test {

using detail::Interruptible;
using detail::Interruption;

/// Throws its number when it is called that often.
struct Countdown {
  int left;

  static void check(void* self) {
    if (--static_cast<Countdown*>(self)->left == 0) throw 7;
  }
};

/// Number of tasks that have run when the exception left, or -1 without one.
int tasks_before_exception(Interruptible where, Countdown countdown, std::size_t tasks) {
  int done = 0;
  const Interruption interruption(where, &Countdown::check, &countdown);
  try {
    parallel::run(tasks, 1, [&](std::size_t, unsigned) noexcept { ++done; });
  } catch (int) {
    return done;
  }
  return -1;
}

TEST_CASE("an interruption ends a run before its tasks") {
  for (const Interruptible where : {Interruptible::between_runs, Interruptible::between_tasks}) CHECK(tasks_before_exception(where, {1}, 100) == 0);
}

TEST_CASE("an interruption ends a run between its tasks only if the caller allows it") {
  CHECK(tasks_before_exception(Interruptible::between_runs, {2}, 100) == -1);
  CHECK(tasks_before_exception(Interruptible::between_tasks, {12}, 100) == 10);
  CHECK(tasks_before_exception(Interruptible::between_tasks, {2}, 10'000) == 0);
  CHECK(tasks_before_exception(Interruptible::between_tasks, {3}, 10'000) == 16);
}

TEST_CASE("runs inside a task are not interrupted") {
  Countdown countdown{3};
  const Interruption interruption(Interruptible::between_tasks, &Countdown::check, &countdown);
  int done = 0;
  parallel::run(1, 1, [&](std::size_t, unsigned) noexcept {
    for (int i = 0; i < 100; ++i) parallel::run(10, 1, [&](std::size_t, unsigned) noexcept { ++done; });
  });
  CHECK(done == 1000);
  CHECK(countdown.left == 1);
}

TEST_CASE("of nested interruptions the innermost applies, and none applies to another thread", "[threads]") {
  Countdown outer{1}, inner{5};
  const Interruption interruption(Interruptible::between_runs, &Countdown::check, &outer);
  const auto run = [] { parallel::run(1, 1, [](std::size_t, unsigned) noexcept {}); };
  {
    const Interruption nested(Interruptible::between_runs, &Countdown::check, &inner);
    run();
  }
  std::thread(run).join();
  CHECK(inner.left == 4);
  CHECK(outer.left == 1);
  CHECK_THROWS_AS(run(), int);
}

}  // namespace parallel_interruption_test
}  // namespace attn::test
