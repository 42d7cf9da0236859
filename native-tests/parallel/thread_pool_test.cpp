#include "attn/parallel/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "parallel/runs.hpp"
#include "support/call.hpp"
#include "support/float_environment.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace parallel_thread_pool_test {

TEST_CASE("the pool calls each task once for any number of tasks, workers and threads", "[threads]") {
  for (const unsigned threads : {1U, 2U, 3U, 4U}) {
    const Threads pool(threads);
    CHECK(num_threads() == threads);
    for (const std::size_t tasks : {0U, 1U, 2U, 3U, 7U, 64U, 1000U})
      for (const unsigned workers : {0U, 1U, 2U, 4U, 9U}) {
        INFO(threads << " threads, " << tasks << " tasks, " << workers << " workers");
        CHECK(calls_of(tasks, workers) == std::vector<int>(tasks, 1));
      }
  }
}

TEST_CASE("the pool can be used repeatedly, after short and long pauses", "[threads]") {
  const Threads pool(3);
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    if (calls_of(5, 3) != std::vector<int>(5, 1)) ++wrong;
    if (i % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(wrong == 0);
}

TEST_CASE("two threads of the pool work at the same time", "[threads]") {
  const Threads pool(2);
  CHECK(two_meet());
}

TEST_CASE("a run returns after its last task has ended, even if the caller has no tasks left", "[threads]") {
  const Threads pool(2);
  for (int i = 0; i < 5; ++i) {
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> helper_began{false}, helper_ended{false};
    parallel::run(2, 2, [&](std::size_t, unsigned) noexcept {
      if (std::this_thread::get_id() != caller) {
        helper_began.store(true);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        helper_ended.store(true);
      } else {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!helper_began.load() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      }
    });
    CHECK(helper_ended.load());
  }
}

TEST_CASE("no two workers of a run have the same number at the same time", "[threads]") {
  const Threads pool(4);
  std::atomic<int> busy[4] = {};
  std::atomic<int> clashes{0};
  for (int i = 0; i < 100; ++i)
    parallel::run(40, 4, [&](std::size_t, unsigned worker) noexcept {
      if (busy[worker].fetch_add(1) != 0) clashes.fetch_add(1);
      busy[worker].fetch_sub(1);
    });
  CHECK(clashes.load() == 0);
}

TEST_CASE("a run inside a task is computed by that task's thread alone", "[threads]") {
  const Threads pool(3);
  std::atomic<int> inner{0}, elsewhere{0};
  parallel::run(10, 3, [&](std::size_t, unsigned) noexcept {
    const auto self = std::this_thread::get_id();
    if (parallel::workers_for(100, 1e12) != 1) elsewhere.fetch_add(1);
    parallel::run(7, 3, [&](std::size_t, unsigned worker) noexcept {
      inner.fetch_add(1);
      if (worker != 0 || std::this_thread::get_id() != self) elsewhere.fetch_add(1);
    });
  });
  CHECK(inner.load() == 70);
  CHECK(elsewhere.load() == 0);
}

TEST_CASE("two user threads may use the pool at the same time", "[threads]") {
  const Threads pool(2);
  std::atomic<int> wrong{0};
  const auto user = [&] {
    for (int i = 0; i < 300; ++i)
      if (calls_of(9, 2) != std::vector<int>(9, 1)) wrong.fetch_add(1);
  };
  std::thread other(user);
  user();
  other.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("the number of threads may change while another thread computes", "[threads]") {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread worker([&] {
    while (!done.load())
      if (calls_of(9, 4) != std::vector<int>(9, 1)) wrong.fetch_add(1);
  });
  for (int i = 0; i < 60; ++i) set_num_threads(1 + static_cast<unsigned>(i) % 4);
  done.store(true);
  worker.join();
  set_num_threads(1);
  CHECK(wrong.load() == 0);
}

TEST_CASE("the writes of tasks are visible when the run returns, however uneven the tasks and the threads are", "[threads]") {
  Generator random(11);
  for (const unsigned threads : {2U, 8U}) {  // 8 are more than the cores
    const Threads pool(threads);
    int wrong = 0;
    for (int i = 0; i < 300; ++i) {
      const auto tasks = static_cast<std::size_t>(2 + random.below(200));
      const std::uint64_t seed = random.next();
      std::vector<std::size_t> written(tasks, 0);  // not atomic, so that ThreadSanitizer finds unordered accesses
      parallel::run(tasks, threads, [&](std::size_t task, unsigned worker) noexcept {
        if (worker != 0 && (seed >> task % 61) % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(seed % 300));
        written[task] += task + 1;
      });
      for (std::size_t task = 0; task < tasks; ++task)
        if (written[task] != task + 1) ++wrong;
    }
    INFO("seed 11, " << threads << " threads");
    CHECK(wrong == 0);
  }
}

TEST_CASE("no task is called after its run has returned, even by threads that wake up late", "[threads]") {
  const Threads pool(4);
  std::atomic<int> late{0};
  for (int i = 0; i < 2000; ++i) {
    auto open = std::make_unique<std::atomic<bool>>(true);
    int calls[2] = {0, 0};
    parallel::run(2, 4, [&late, &calls, open = open.get()](std::size_t task, unsigned) noexcept {
      if (!open->load()) late.fetch_add(1);
      ++calls[task];
    });
    open->store(false);
    if (calls[0] != 1 || calls[1] != 1) late.fetch_add(1);
    if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 200));
  }
  CHECK(late.load() == 0);
}

TEST_CASE("many small runs of several user threads call each task once while the number of threads changes", "[threads]") {
  const Threads pool(3);
  constexpr int kUsers = 4, kRuns = 25'000;
  std::atomic<int> wrong{0}, running{kUsers};
  std::vector<std::thread> users;
  for (int user = 0; user < kUsers; ++user)
    users.emplace_back([&, user] {
      int calls[6];
      for (int i = 0; i < kRuns; ++i) {
        const auto tasks = static_cast<std::size_t>(1 + (i + user) % 6);
        std::fill(calls, calls + 6, 0);
        parallel::run(tasks, 3, [&](std::size_t task, unsigned) noexcept { ++calls[task]; });
        for (std::size_t task = 0; task < 6; ++task)
          if (calls[task] != (task < tasks ? 1 : 0)) wrong.fetch_add(1);
      }
      running.fetch_sub(1);
    });
  for (unsigned i = 0; running.load() > 0; ++i) {
    set_num_threads(2 + i % 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& user : users) user.join();
  CHECK(wrong.load() == 0);
}

template <class F>
constexpr bool kIsBody = std::is_constructible_v<parallel::TaskRef, const F&>;

TEST_CASE("a task must be noexcept", "[threads]") {
  const auto quiet = [](std::size_t, unsigned) noexcept {};
  const auto loud = [](std::size_t, unsigned) {};
  STATIC_CHECK(kIsBody<decltype(quiet)>);
  STATIC_CHECK_FALSE(kIsBody<decltype(loud)>);
}

TEST_CASE("a task that changes the number of threads is refused in any thread, and may retry outside the run", "[threads]") {
  for (const unsigned threads : {1U, 2U, 3U}) {
    INFO(threads << " threads");
    const Threads pool(threads);
    const auto refused = [](unsigned count) noexcept {
      try {
        set_num_threads(count);
      } catch (const Error& error) {
        return error.code() == ErrorCode::busy &&
               std::string(error.what()).find("set_num_threads: the caller is a task, expected a thread outside the pool") == 0;
      }
      return false;
    };
    std::atomic<int> busy{0}, nested{0};
    parallel::run(9, threads, [&](std::size_t task, unsigned) noexcept {
      if (refused(1 + static_cast<unsigned>(task) % 4)) ++busy;
      parallel::run(2, threads, [&](std::size_t, unsigned) noexcept {
        if (refused(1)) ++nested;
      });
    });
    CHECK(busy.load() == 9);
    CHECK(nested.load() == 18);
    CHECK(num_threads() == threads);
    set_num_threads(2);
    CHECK(calls_of(64, 2) == std::vector<int>(64, 1));
  }
}

TEST_CASE("idle threads use no processor time", "[threads]") {
  const Threads pool(4);
  CHECK(calls_of(64, 4) == std::vector<int>(64, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::clock_t before = std::clock();  // of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(used < 0.05);  // a spinning thread would use 0.3 s, or 0.15 s on half a core
}

TEST_CASE("0 threads means one per core", "[threads]") {
  const Threads pool(0);
  CHECK(num_threads() == std::max(1U, std::thread::hardware_concurrency()));
}

TEST_CASE("the number of workers grows with the amount of work", "[threads]") {
  CHECK(parallel::workers_for(100, 1e12) == 1);
  const Threads pool(4);
  CHECK(parallel::workers_for(100, 1e12) == 4);
  CHECK(parallel::workers_for(2, 1e12) == 2);
  CHECK(parallel::workers_for(0, 0) == 1);
  CHECK(parallel::workers_for(100, 1000) == 1);
}

TEST_CASE("any number of threads gives the same bits", "[threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  for (const unsigned threads : {2U, 3U, 4U}) {
    INFO("seed 7, " << threads << " threads");
    const Threads pool(threads);
    const std::vector<Array> shared = work.run();
    REQUIRE(shared.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK_THAT(shared[i], HasBitsOf(alone[i]));
  }
}

TEST_CASE("two user threads may call the same layer at the same time and get the same bits", "[threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  const Threads pool(2);
  std::atomic<int> wrong{0};
  const auto user = [&] {
    for (int i = 0; i < 3; ++i)
      if (work.run() != alone) wrong.fetch_add(1);
  };
  std::thread other(user);
  user();
  other.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("tasks run in the default floating-point environment, and the caller keeps its own", "[threads]") {
  for (const unsigned threads : {1U, 2U, 3U}) {
    INFO(threads << " threads");
    const ForeignEnvironment environment;
    const Threads pool(threads);
    std::atomic<int> foreign{0};
    parallel::run(300, threads, [&](std::size_t, unsigned) noexcept {
      if (ForeignEnvironment::is_in_force()) ++foreign;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
    CHECK(foreign == 0);
    CHECK(ForeignEnvironment::is_in_force());
  }
}

#ifdef ATTN_TESTS_FORK

TEST_CASE("the child of a fork has as many working threads as its parent, computes the same bits, and exits", "[threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  for (const unsigned threads : {2U, 4U}) {
    INFO(threads << " threads");
    const Threads pool(threads);
    CHECK(work.run() == alone);
    CHECK(status_of_child([] { return 0; }) == 0);
    CHECK(status_of_child([&] { return num_threads() == threads && parallel::workers_for(100, 1e12) == threads ? 0 : 1; }) == 0);
    CHECK(status_of_child([&] { return work.run() == alone ? 0 : 1; }) == 0);
    CHECK(status_of_child([] { return two_meet() ? 0 : 1; }) == 0);
    CHECK(status_of_child([] { return status_of_child([] { return two_meet() ? 0 : 1; }); }) == 0);
    CHECK(status_of_child([] { return two_meet() ? status_of_child([] { return two_meet() ? 0 : 1; }) : 2; }) == 0);
    CHECK(status_of_child([&] { return set_num_threads(threads), two_meet() ? 0 : 1; }) == 0);
    CHECK(status_of_child([] { return set_num_threads(1), num_threads() == 1 ? 0 : 1; }) == 0);
    CHECK(status_of_child([&] { return set_num_threads(3), num_threads() == 3 && two_meet() && work.run() == alone ? 0 : 1; }) == 0);
    CHECK(status_of_child([&] {
            set_num_threads(2);
            return status_of_child([&] { return set_num_threads(3), work.run() == alone ? 0 : 1; });
          }) == 0);
    CHECK(num_threads() == threads);
    CHECK(work.run() == alone);
  }
}

TEST_CASE("the child of a fork works even if another thread was in the middle of a run", "[threads]") {
  const Threads pool(3);
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> began{false}, done{false};
    std::thread other([&] {
      parallel::run(3, 3, [&](std::size_t, unsigned) noexcept {
        began.store(true);
        while (!done.load()) std::this_thread::yield();
      });
    });
    while (!began.load()) std::this_thread::yield();
    CHECK(status_of_child([] {
            if (calls_of(64, 2) != std::vector<int>(64, 1)) return 1;
            set_num_threads(2);
            return calls_of(64, 2) == std::vector<int>(64, 1) ? 0 : 2;
          }) == 0);
    done.store(true);
    other.join();
  }
}

TEST_CASE("a program may exit while one of its threads computes, and inside a task", "[threads]") {
  const auto work_forever = [] {
    while (true) calls_of(9, 2);
  };
  for (int i = 0; i < 10; ++i) {
    CHECK(status_of_child([&] {
            set_num_threads(2);
            std::thread(work_forever).detach();
            std::this_thread::sleep_for(std::chrono::milliseconds(i));
            return 0;
          }) == 0);
    CHECK(status_of_child([] {
            set_num_threads(3);
            std::atomic<bool> ended{false};
            parallel::run(3, 3, [&](std::size_t, unsigned) noexcept {
              if (!ended.exchange(true)) std::exit(7);
              while (true) std::this_thread::yield();
            });
            return 0;
          }) == 7);
  }
}

#endif

}  // namespace parallel_thread_pool_test
}  // namespace attn::test
