#include "attn/parallel/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "support/call.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace {

/// Sets the number of threads for as long as it lives.
struct Threads {
  explicit Threads(unsigned count) { set_num_threads(count); }
  ~Threads() { set_num_threads(1); }
};

/// Runs that many tasks and returns how often each was called; -1 where the worker was none of those asked for.
std::vector<int> calls_of(std::size_t tasks, unsigned workers) {
  const auto calls = std::make_unique<std::atomic<int>[]>(tasks + 1);
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) {
    if (worker < std::max(workers, 1U))
      calls[task].fetch_add(1);
    else
      calls[task].store(-1000);
  });
  std::vector<int> counts;
  for (std::size_t task = 0; task < tasks; ++task) counts.push_back(calls[task].load());
  return counts;
}

TEST_CASE("the pool calls each task once, whatever the numbers of tasks, workers and threads", "[threads]") {
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

TEST_CASE("the pool works again and again, soon after and long after the run before", "[threads]") {
  const Threads pool(3);
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    if (calls_of(5, 3) != std::vector<int>(5, 1)) ++wrong;
    if (i % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // threads fall asleep meanwhile
  }
  CHECK(wrong == 0);
}

TEST_CASE("two threads of the pool really work at the same time", "[threads]") {
  const Threads pool(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{true};
  parallel::run(2, 2, [&](std::size_t, unsigned) {
    inside.fetch_add(1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside.load() < 2 && met.load())
      if (std::chrono::steady_clock::now() > until) met.store(false);
  });
  CHECK(met.load());
}

TEST_CASE("a run returns when its last task has ended, not when the caller has none left", "[threads]") {
  const Threads pool(2);
  for (int i = 0; i < 5; ++i) {
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> helper_began{false}, helper_ended{false};
    parallel::run(2, 2, [&](std::size_t, unsigned) {
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

TEST_CASE("no two workers of a run share a number at the same time", "[threads]") {
  const Threads pool(4);
  std::atomic<int> busy[4] = {};
  std::atomic<int> clashes{0};
  for (int i = 0; i < 100; ++i)
    parallel::run(40, 4, [&](std::size_t, unsigned worker) {
      if (busy[worker].fetch_add(1) != 0) clashes.fetch_add(1);
      busy[worker].fetch_sub(1);
    });
  CHECK(clashes.load() == 0);
}

TEST_CASE("a run inside a task is done by that task's thread alone", "[threads]") {
  const Threads pool(3);
  std::atomic<int> inner{0}, elsewhere{0};
  parallel::run(10, 3, [&](std::size_t, unsigned) {
    const auto self = std::this_thread::get_id();
    if (parallel::workers_for(100, 1e12) != 1) elsewhere.fetch_add(1);
    parallel::run(7, 3, [&](std::size_t, unsigned worker) {
      inner.fetch_add(1);
      if (worker != 0 || std::this_thread::get_id() != self) elsewhere.fetch_add(1);
    });
  });
  CHECK(inner.load() == 70);
  CHECK(elsewhere.load() == 0);
}

TEST_CASE("two user threads may use the pool at once", "[threads]") {
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

TEST_CASE("the number of threads may change while another thread works", "[threads]") {
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

TEST_CASE("what tasks wrote is there when the run returns, however unevenly they take and the threads come", "[threads]") {
  Generator random(11);
  for (const unsigned threads : {2U, 8U}) {  // 8 are more than there are cores
    const Threads pool(threads);
    int wrong = 0;
    for (int i = 0; i < 300; ++i) {
      const auto tasks = static_cast<std::size_t>(2 + random.below(200));
      const std::uint64_t seed = random.next();
      std::vector<std::size_t> written(tasks, 0);  // no atomics: ThreadSanitizer sees what the run does not order
      parallel::run(tasks, threads, [&](std::size_t task, unsigned worker) {
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

TEST_CASE("no task is called after its run has returned, also by threads that were woken for it and come late", "[threads]") {
  const Threads pool(4);
  std::atomic<int> late{0};
  for (int i = 0; i < 2000; ++i) {
    auto open = std::make_unique<std::atomic<bool>>(true);
    int calls[2] = {0, 0};
    parallel::run(2, 4, [&late, &calls, open = open.get()](std::size_t task, unsigned) {
      if (!open->load()) late.fetch_add(1);
      ++calls[task];
    });
    open->store(false);
    if (calls[0] != 1 || calls[1] != 1) late.fetch_add(1);
    // Sometimes at once the next run, sometimes long enough after this one for threads to fall asleep.
    if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 200));
  }
  CHECK(late.load() == 0);
}

TEST_CASE("a hundred thousand small runs of several user threads do each task once, while the number of threads changes", "[threads]") {
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
        parallel::run(tasks, 3, [&](std::size_t task, unsigned) { ++calls[task]; });
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

TEST_CASE("what a task throws comes out of the run, on any number of threads, and the pool goes on", "[threads]") {
  for (const unsigned threads : {1U, 2U, 4U}) {
    INFO(threads << " threads");
    const Threads pool(threads);
    for (int i = 0; i < 200; ++i) {
      std::atomic<int> inside{0};
      try {
        parallel::run(50, threads, [&](std::size_t task, unsigned) {
          inside.fetch_add(1);
          if (task % 7 == 3) {
            inside.fetch_sub(1);
            throw std::runtime_error("task " + std::to_string(task % 7));
          }
          inside.fetch_sub(1);
        });
        FAIL("nothing came out");
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) != "task 3" || inside.load() != 0) FAIL("not the task's, or some still run");
      }
    }
    CHECK(calls_of(64, threads) == std::vector<int>(64, 1));
    CHECK(parallel::workers_for(100, 1e12) == threads);
  }
}

TEST_CASE("a task that changes the number of threads is refused, whoever runs it, and may try again outside", "[threads]") {
  for (const unsigned threads : {1U, 2U, 3U}) {
    INFO(threads << " threads");
    const Threads pool(threads);
    std::atomic<int> busy{0};
    parallel::run(9, threads, [&](std::size_t task, unsigned) {
      try {
        set_num_threads(1 + static_cast<unsigned>(task) % 4);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::busy) busy.fetch_add(1);
      }
    });
    CHECK(busy.load() == 9);
    check_error({ErrorCode::busy, "set_num_threads", "the caller", {"a task", "none"}},
                [&] { parallel::run(9, threads, [](std::size_t, unsigned) { set_num_threads(2); }); });
    // Inside a nested run, too.
    check_error({ErrorCode::busy, "set_num_threads", "the caller", {}}, [&] {
      parallel::run(9, threads, [&](std::size_t, unsigned) { parallel::run(2, threads, [](std::size_t, unsigned) { set_num_threads(1); }); });
    });
    CHECK(num_threads() == threads);
    set_num_threads(2);
    CHECK(calls_of(64, 2) == std::vector<int>(64, 1));
  }
}

TEST_CASE("threads that have nothing to do use no time of a core", "[threads]") {
  const Threads pool(4);
  CHECK(calls_of(64, 4) == std::vector<int>(64, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::clock_t before = std::clock();  // of all threads of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(used < 0.05);  // one thread that looked all the time would use 0.3 s, even on half a core 0.15
}

TEST_CASE("0 threads mean one per core", "[threads]") {
  const Threads pool(0);
  CHECK(num_threads() == std::max(1U, std::thread::hardware_concurrency()));
}

TEST_CASE("workers are as many as the work is worth", "[threads]") {
  CHECK(parallel::workers_for(100, 1e12) == 1);
  const Threads pool(4);
  CHECK(parallel::workers_for(100, 1e12) == 4);
  CHECK(parallel::workers_for(2, 1e12) == 2);
  CHECK(parallel::workers_for(0, 0) == 1);
  CHECK(parallel::workers_for(100, 1000) == 1);
}

/// One of everything that uses the pool, large enough for four threads to take part.
struct Work {
  Work() : layer({.embed_dim = 96, .num_heads = 4}) {
    Generator random(7);
    c.query = random.normal({2, 3, 61, 32});
    c.key = random.normal({2, 3, 67, 32});
    c.value = random.normal({2, 3, 67, 40});
    c.mask = random_mask(random, MaskKind::additive, {61, 67});
    x = random.normal({2, 61, 96});
    weight = random.normal({90, 96});
    bias = random.normal({90});
    layer.initialize({.seed = 3});
  }
  std::vector<Array> run() const {
    const Result attended = attention(c, {.need_weights = true, .trace = kAttentionTrace});
    const Result forwarded = forward(layer, x, {.is_causal = true, .need_weights = true, .average_weights = true, .trace = kWholeTrace});
    std::vector<Array> all{attended.output,          *attended.weights,    forwarded.output,   *forwarded.weights,
                           linear(x, weight, &bias), softmax(c.query, -1), softmax(c.query, 1)};
    for (const auto& [name, tensor] : attended.trace) all.push_back(tensor);
    for (const auto& [name, tensor] : forwarded.trace) all.push_back(tensor);
    // Few rows: shared out by columns.
    all.push_back(linear(slice(slice(x, 0), 0), Array({512, 96}, 0.25F)));
    return all;
  }

  AttentionCase c;
  MultiHeadAttention layer;
  Array x, weight, bias;
};

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

TEST_CASE("two user threads may call the same layer at once and get the same bits", "[threads]") {
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

// ThreadSanitizer ends the child of a program with threads as soon as it starts one.
#if (defined(__unix__) || defined(__APPLE__)) && !defined(__SANITIZE_THREAD__)

/// Forks, calls body in the child, which then ends as programs do, and returns its status as a shell has it: 128 and the signal where it
/// was ended by one; -1 where there was no child. A child that hangs is ended after a minute. No assertion of Catch2 in here: children call it too.
template <class Body>
int status_of_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    // Catch2 answers these by reporting the test as failed, from the child.
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGTERM}) std::signal(signal, SIG_DFL);
    // Catch2's JUnit report leads these into buffers of its own, which are gone when the program flushes them at its end.
    for (std::ostream* stream : {&std::cout, &std::cerr, &std::clog}) stream->rdbuf(nullptr);
    alarm(60);
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    std::exit(status);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("the child of a fork has one thread, the same bits, and ends", "[threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  for (const unsigned threads : {2U, 4U}) {
    INFO(threads << " threads");
    const Threads pool(threads);
    CHECK(work.run() == alone);
    CHECK(status_of_child([] { return 0; }) == 0);
    CHECK(status_of_child([] { return num_threads() == 1 ? 0 : 1; }) == 0);
    CHECK(status_of_child([&] { return work.run() == alone ? 0 : 1; }) == 0);
    CHECK(status_of_child([] { return set_num_threads(1), 0; }) == 0);
    CHECK(status_of_child([&] { return set_num_threads(3), num_threads() == 3 && work.run() == alone ? 0 : 1; }) == 0);
    CHECK(status_of_child([&] {
            set_num_threads(2);
            return status_of_child([&] { return set_num_threads(3), work.run() == alone ? 0 : 1; });
          }) == 0);
    // The parent has what it had.
    CHECK(num_threads() == threads);
    CHECK(work.run() == alone);
  }
}

TEST_CASE("the child of a fork works also where another thread was in the middle of a run", "[threads]") {
  const Threads pool(3);
  for (int i = 0; i < 5; ++i) {
    std::atomic<bool> began{false}, done{false};
    std::thread other([&] {
      parallel::run(3, 3, [&](std::size_t, unsigned) {
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

TEST_CASE("a program may end while a thread of its works, and inside a task", "[threads]") {
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
            parallel::run(3, 3, [&](std::size_t, unsigned) {
              if (!ended.exchange(true)) std::exit(7);
              while (true) std::this_thread::yield();
            });
            return 0;
          }) == 7);
  }
}

#endif

}  // namespace
}  // namespace attn::test
