#include "attn/tensor/interruption.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <thread>

#include "attn/layers/multi_head_attention.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/train/adam.hpp"
#include "support/call.hpp"

namespace attn::test {
namespace parallel_interruption_test {

using detail::Interruptible;
using detail::Interruption;

struct Countdown {
  int left;

  static void check(void* self) {
    if (--static_cast<Countdown*>(self)->left == 0) throw 7;
  }
};

/// -1 without an exception.
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

template <class Act>
bool is_interrupted(int checks, Act act) {
  Countdown countdown{checks};
  const Interruption interruption(Interruptible::between_runs, &Countdown::check, &countdown);
  try {
    act();
  } catch (int) {
    return true;
  }
  return false;
}

constexpr MultiHeadAttentionOptions kOptions{.embed_dim = 64, .num_heads = 4};

TEST_CASE("an interruption leaves no weight half-written") {
  MultiHeadAttention layer(kOptions);
  const StateDict before = layer.state_dict();
  layer.initialize({.seed = 5});
  const StateDict after = layer.state_dict();
  for (int checks = 1; checks < 20; ++checks) {
    layer.load_state_dict(before);
    const bool ended = is_interrupted(checks, [&] { layer.load_state_dict(after); });
    CHECK(arrays_of(layer.state_dict()) == arrays_of(ended ? before : after));
  }
}

TEST_CASE("an interruption leaves no step of an optimiser half-taken") {
  Tensor<3> x = Tensor<3>::from_shape({1, 3, 64});
  x.fill(0.25F);
  for (int checks = 1; checks < 5; ++checks) {
    MultiHeadAttention layer(kOptions);
    layer.forward(x, {.for_backward = true});
    layer.backward(x);
    const auto before = arrays_of(layer.state_dict());
    AdamW optimizer({layer});
    const bool ended = is_interrupted(checks, [&] { optimizer.step(); });
    CHECK((arrays_of(layer.state_dict()) == before) == ended);
    CHECK(optimizer.state_dict().empty() == ended);
  }
}

}  // namespace parallel_interruption_test
}  // namespace attn::test
