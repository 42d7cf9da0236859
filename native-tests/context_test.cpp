#include "attn/context.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/lists.hpp"
#include "parallel/runs.hpp"
#include "support/call.hpp"
#include "support/float_environment.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace attn::test {
namespace context_test {

struct Counting : Executor {
  explicit Counting(unsigned count) : threads(count) {}
  unsigned workers() const override {
    ++asked;
    return threads;
  }
  void run(unsigned count, const Work& work) override {
    ++runs;
    share(count, work);
  }
  virtual void share(unsigned count, const Work& work) = 0;

  const unsigned threads;
  mutable std::atomic<int> asked{0};
  std::atomic<int> runs{0};
};

struct InTurn : Counting {
  using Counting::Counting;
  void share(unsigned count, const Work& work) override {
    for (unsigned i = 0; i < count; ++i) work();
  }
};

struct Elsewhere : Counting {
  using Counting::Counting;
  void share(unsigned count, const Work& work) override {
    std::thread([&] {
      for (unsigned i = 0; i < count; ++i) work();
    }).join();
  }
};

/// More threads than requested; the last begin first.
struct Crowd : Counting {
  using Counting::Counting;
  void share(unsigned count, const Work& work) override {
    std::vector<std::thread> helpers;
    for (unsigned i = 0; i < std::min(3 * count, 12U); ++i)
      helpers.emplace_back([&work, i] {
        std::this_thread::sleep_for(std::chrono::microseconds(50 * (12 - i)));
        work();
        work();
      });
    work();
    for (std::thread& helper : helpers) helper.join();
  }
};

/// Does not wait: some threads start long after the run.
struct Queue : Counting {
  explicit Queue(unsigned count) : Counting(count) {
    for (unsigned i = 1; i < std::clamp(count, 2U, 4U); ++i) helpers_.emplace_back([this] { help(); });
  }
  ~Queue() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }
  void share(unsigned count, const Work& work) override {
    {
      const std::lock_guard lock(mutex_);
      for (unsigned i = 1; i < count && waiting_.size() < 1000; ++i) waiting_.push_back(work);
    }
    changed_.notify_all();
  }

 private:
  void help() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Work work = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool ended_ = false;
  std::vector<std::thread> helpers_;
};

struct Late : Counting {
  using Counting::Counting;
  void share(unsigned, const Work& work) override {
    std::vector<Work> late{work};
    {
      const std::lock_guard lock(mutex_);
      late.swap(kept_);
    }
    for (const Work& of_before : late) std::thread([&] { of_before(); }).join();
  }

 private:
  std::mutex mutex_;
  std::vector<Work> kept_;
};

struct Idle : Counting {
  using Counting::Counting;
  void share(unsigned, const Work&) override {}
};

const std::pair<const char*, std::function<std::shared_ptr<Counting>(unsigned)>> kExecutors[] = {
    {"in turn", [](unsigned n) { return std::make_shared<InTurn>(n); }}, {"elsewhere", [](unsigned n) { return std::make_shared<Elsewhere>(n); }},
    {"crowd", [](unsigned n) { return std::make_shared<Crowd>(n); }},    {"queue", [](unsigned n) { return std::make_shared<Queue>(n); }},
    {"late", [](unsigned n) { return std::make_shared<Late>(n); }},      {"idle", [](unsigned n) { return std::make_shared<Idle>(n); }},
};

TEST_CASE("an executor runs each task once, however it schedules the work", "[context][threads]") {
  for (const auto& [name, make] : kExecutors)
    for (const unsigned threads : {0U, 1U, 2U, 3U, 5000U}) {
      const auto executor = make(threads);
      const Context context({.executor = executor});
      const Context::Scope scope(context);
      INFO(name << ", " << threads << " threads");
      CHECK(num_threads() == std::clamp(threads, 1U, 4095U));
      int runs = 0;
      for (const std::size_t tasks : {0U, 1U, 2U, 3U, 7U, 64U, 1000U})
        for (const unsigned workers : {0U, 1U, 2U, 4U, 9U}) {
          INFO(tasks << " tasks, " << workers << " workers");
          CHECK(calls_of(tasks, workers) == std::vector<int>(tasks, 1));
          if (tasks > 1 && workers > 1) ++runs;
        }
      CHECK(executor->runs == (threads > 1 ? runs : executor->runs.load()));
      CHECK(executor->asked == 1);
    }
}

TEST_CASE("threads of an executor have distinct worker numbers, and their writes are visible when the run returns", "[context][threads]") {
  for (const auto& [name, make] : kExecutors) {
    INFO(name);
    const Context context({.executor = make(3)});
    const Context::Scope scope(context);
    int wrong = 0;
    for (int i = 0; i < 40; ++i) {
      std::atomic<int> busy[3] = {}, clashes{0};
      std::vector<std::size_t> written(50, 0);  // not atomic, so that ThreadSanitizer finds unordered accesses
      parallel::run(50, 3, [&](std::size_t task, unsigned worker) noexcept {
        if (busy[worker].fetch_add(1) != 0) ++clashes;
        if (task % 16 == 3) std::this_thread::sleep_for(std::chrono::microseconds(100));
        written[task] += task + 1;
        busy[worker].fetch_sub(1);
      });
      for (std::size_t task = 0; task < 50; ++task)
        if (written[task] != task + 1) ++wrong;
      wrong += clashes.load();
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("an executor's threads work in the default floating-point environment and keep their own", "[context][threads]") {
  for (const auto& [name, make] : kExecutors) {
    INFO(name);
    const ForeignEnvironment environment;
    const Context context({.executor = make(3)});
    const Context::Scope scope(context);
    std::atomic<int> foreign{0};
    parallel::run(50, 3, [&](std::size_t, unsigned) noexcept {
      if (ForeignEnvironment::is_in_force()) ++foreign;
    });
    CHECK(foreign == 0);
    CHECK(ForeignEnvironment::is_in_force());
  }
}

TEST_CASE("an executor's threads work at the same time", "[context][threads]") {
  for (const std::size_t i : {2U, 3U}) {
    const Context context({.executor = kExecutors[i].second(2)});
    const Context::Scope scope(context);
    INFO(kExecutors[i].first);
    CHECK(two_meet());
  }
  const Context context({.num_threads = 2});
  const Context::Scope scope(context);
  CHECK(two_meet());
}

TEST_CASE("an executor, a context's own threads and one thread give the same bits", "[context][threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  for (const auto& [name, make] : kExecutors) {
    INFO(name);
    const auto executor = make(4);
    const Context context({.executor = executor});
    const Context::Scope scope(context);
    CHECK(work.run() == alone);
    CHECK(executor->runs > 5);
  }
  for (const unsigned threads : {1U, 2U, 4U}) {
    const Context context({.num_threads = threads});
    const Context::Scope scope(context);
    INFO(threads << " threads");
    CHECK(num_threads() == threads);
    CHECK(work.run() == alone);
  }
}

TEST_CASE("an exception of an executor is rethrown after all tasks of the run, and the next call works", "[context][threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  struct Failing : Counting {
    using Counting::Counting;
    void share(unsigned, const Work& given) override {
      if (how == 0) return given();
      std::vector<std::thread> helpers;
      if (how == 2) {
        const int before = inside.load();
        std::thread([given] { given(); }).detach();
        while (inside.load() == before) std::this_thread::yield();
      }
      throw std::runtime_error("no threads today");
    }
    std::atomic<int> how{0}, inside{0};
  };
  const auto executor = std::make_shared<Failing>(2);
  const Context context({.executor = executor});
  const Context::Scope scope(context);
  for (const int how : {1, 2, 0, 2, 1}) {
    INFO("how " << how);
    executor->how = how;
    int thrown = 0;
    std::atomic<int> calls{0}, ended{0};
    try {
      parallel::run(1000, 2, [&](std::size_t, unsigned) noexcept {
        ++calls;
        ++executor->inside;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        ++ended;
      });
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "no threads today");
      thrown = 1;
    }
    CHECK(thrown == (how == 0 ? 0 : 1));
    CHECK(calls == ended);
    CHECK(calls == 1000);
    if (how == 1) CHECK_THROWS_AS(work.run(), std::runtime_error);
    CHECK(num_threads() == 2);
    executor->how = 0;
    CHECK(work.run() == alone);
  }
}

TEST_CASE("a context with invalid options is refused, and an executor's exception propagates", "[context]") {
  const auto executor = std::make_shared<InTurn>(2);
  check_error({ErrorCode::config, "Context", "num_threads", {"is 3", "no value"}}, [&] { Context({.num_threads = 3, .executor = executor}); });
  struct Broken : InTurn {
    using InTurn::InTurn;
    unsigned workers() const override { throw std::logic_error("not yet"); }
  };
  CHECK_THROWS_AS(Context({.executor = std::make_shared<Broken>(2)}), std::logic_error);
  CHECK(Context({.num_threads = 0}).num_threads() == std::max(1U, std::thread::hardware_concurrency()));
}

TEST_CASE("the innermost context applies completely, and only in its thread", "[context][threads]") {
  const Threads process(3);
  const Context plain, threads({.num_threads = 2}), limit({.memory_limit = 1000}), both({.num_threads = 4, .memory_limit = 2000});
  const auto in_force = [] { return std::pair{num_threads(), memory_limit()}; };
  const std::pair outside{3U, std::uint64_t{1} << 63};
  REQUIRE(in_force() == outside);
  CHECK(both.num_threads() == 4);
  CHECK(both.memory_limit() == 2000);
  CHECK(plain.num_threads() == 3);
  {
    const Context::Scope outer(both);
    CHECK(in_force() == std::pair{4U, std::uint64_t{2000}});
    CHECK(plain.num_threads() == 3);
    {
      const Context::Scope inner(threads);
      CHECK(in_force() == std::pair{2U, outside.second});
      const Context::Scope again(both);
      CHECK(in_force() == std::pair{4U, std::uint64_t{2000}});
    }
    {
      const Context::Scope inner(limit);
      CHECK(in_force() == std::pair{3U, std::uint64_t{1000}});
    }
    {
      const Context::Scope inner(plain);
      CHECK(in_force() == outside);
    }
    CHECK(in_force() == std::pair{4U, std::uint64_t{2000}});
    set_num_threads(2);
    set_memory_limit(5000);
    CHECK(in_force() == std::pair{4U, std::uint64_t{2000}});
    CHECK(plain.num_threads() == 2);
    std::thread([&] { CHECK(in_force() == std::pair{2U, std::uint64_t{5000}}); }).join();
    set_memory_limit(outside.second);
  }
  CHECK(in_force() == std::pair{2U, outside.second});
  auto given = std::make_unique<Context>(ContextOptions{.num_threads = 2, .memory_limit = 7});
  const Context copy = *given;
  const Context::Scope scope(*std::make_unique<Context>(*given));
  given.reset();
  CHECK(copy.num_threads() == 2);
  CHECK(in_force() == std::pair{2U, std::uint64_t{7}});
  CHECK(calls_of(64, 2) == std::vector<int>(64, 1));
}

TEST_CASE("a context's memory limit applies only to its calls, and its messages state it", "[context][threads]") {
  const Array x({10, 10}, 1);
  const auto refused = [&](const char* limit) { check_error({ErrorCode::memory, "softmax", "", {limit}}, [&] { softmax(x, -1); }); };
  const Context narrow({.memory_limit = 399}), wide({.memory_limit = 400});
  CHECK_NOTHROW(softmax(x, -1));
  {
    const Context::Scope scope(narrow);
    refused("at most 399 bytes");
    std::thread([&] { CHECK_NOTHROW(softmax(x, -1)); }).join();
    const Context::Scope inner(wide);
    CHECK_NOTHROW(softmax(x, -1));
  }
  set_memory_limit(100);
  refused("at most 100 bytes");
  {
    const Context::Scope scope(wide);
    CHECK_NOTHROW(softmax(x, -1));
  }
  set_memory_limit(std::uint64_t{1} << 63);
  CHECK_NOTHROW(softmax(x, -1));
}

TEST_CASE("the memory limit can change while other threads compute", "[context][threads]") {
  const Array x({10, 10}, 1);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread worker([&] {
    while (!done.load()) try {
        softmax(x, -1);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::memory) ++wrong;
      }
  });
  for (int i = 0; i < 300; ++i) {
    set_memory_limit(i % 2 == 0 ? 399 : 400);
    std::this_thread::yield();
  }
  done = true;
  worker.join();
  set_memory_limit(std::uint64_t{1} << 63);
  CHECK(wrong == 0);
}

TEST_CASE("two threads can use one context at the same time", "[context][threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  std::vector<Context> contexts{Context({.num_threads = 3, .memory_limit = 1 << 30})};
  for (const auto& [name, make] : kExecutors) contexts.emplace_back(ContextOptions{.executor = make(3), .memory_limit = 1 << 30});
  for (const Context& context : contexts) {
    std::atomic<int> wrong{0};
    const auto user = [&] {
      const Context::Scope scope(context);
      for (int i = 0; i < 2; ++i)
        if (work.run() != alone || num_threads() != 3 || memory_limit() != 1 << 30) ++wrong;
    };
    std::thread other(user);
    user();
    other.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("other work in an executor's thread during a run does not see the run's context", "[context][threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  struct Stealing : Counting {
    using Counting::Counting;
    void share(unsigned, const Work& given) override {
      other();
      given();
      other();
    }
    std::function<void()> other;
  };
  const auto executor = std::make_shared<Stealing>(2);
  const Context context({.executor = executor, .memory_limit = 1 << 30});
  bool busy = false;
  int right = 0;
  executor->other = [&] {
    if (num_threads() == 1 && memory_limit() == std::uint64_t{1} << 63) ++right;
    if (std::exchange(busy, true)) return;
    const Context::Scope again(context);
    if (work.run() == alone) ++right;
    set_num_threads(1);
  };
  const Context::Scope scope(context);
  CHECK(work.run() == alone);
  CHECK(right == 2 * executor->runs + 1);
  CHECK(num_threads() == 2);
}

TEST_CASE("several threads can create and destroy contexts at the same time", "[context][threads]") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user)
    users.emplace_back([&] {
      for (unsigned i = 0; i < 40; ++i) {
        const Context context({.num_threads = 1 + i % 3});
        const Context::Scope scope(context);
        if (calls_of(9, 3) != std::vector<int>(9, 1) || num_threads() != 1 + i % 3) ++wrong;
      }
    });
  for (std::thread& user : users) user.join();
  CHECK(wrong == 0);
}

#ifdef ATTN_TESTS_FORK
TEST_CASE("fork() waits for a thread that changes a global list, and the child can change the list", "[context][threads]") {
  std::atomic<bool> held{false};
  parallel::lock_lists();
  std::thread holder([&] {
    const auto lock = parallel::lock_lists();
    held = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  while (!held.load()) std::this_thread::yield();
  CHECK(status_of_child([]() -> int {
          Context::release_memory();
          _exit(Context({.num_threads = 2}).num_threads() == 2 ? 0 : 1);
        }) == 0);
  holder.join();
}

#ifdef ATTN_TESTS_FORK_DURING_CALLS
TEST_CASE("in the child of a fork, contexts have working threads, as many as in the parent", "[context][threads]") {
  const Work work;
  const std::vector<Array> alone = work.run();
  const Context context({.num_threads = 3}), other({.num_threads = 2});
  std::atomic<bool> done{false};
  std::thread user([&] {
    const Context::Scope scope(other);
    while (!done.load()) {
      calls_of(9, 2);
      const Context short_lived({.num_threads = 2});
      work.layer.forward(tensor_of<3>(work.x));
    }
  });
  for (int i = 0; i < 10; ++i) {
    const Context::Scope scope(context);
    const auto works = [&] {
      if (num_threads() != 3 || !two_meet() || work.run() != alone) return 1;
      MultiHeadAttention({.embed_dim = 96, .num_heads = 4}).forward(tensor_of<3>(work.x));
      Context::release_memory();
      const Context::Scope inner(other);
      if (num_threads() != 2 || !two_meet()) return 2;
      return Context({.num_threads = 2}).num_threads() == 2 ? 0 : 3;
    };
    // _exit: a leak checker would report the other thread's blocks.
    CHECK(status_of_child([&]() -> int { _exit(works()); }) == 0);
    CHECK(two_meet());
  }
  done = true;
  user.join();
}
#endif
#endif

TEST_CASE("arch() names the architecture in use, and after first use no other one can be pinned", "[context]") {
  const std::string in_use = kernels::best().architecture;
  CHECK(Context::arch() == in_use);
  const std::vector<std::string_view> archs = Context::archs();
  CHECK(std::find(archs.begin(), archs.end(), in_use) != archs.end());
  if (std::getenv("ATTN_MAX_ARCH") == nullptr) CHECK(archs.back() == in_use);
  CHECK_NOTHROW(Context::pin_arch(in_use));
  for (const std::string_view arch : archs)
    if (arch != in_use) check_error({ErrorCode::config, "pin_arch", "arch", {std::string(arch), in_use, "chosen"}}, [&] { Context::pin_arch(arch); });
  check_error({ErrorCode::config, "pin_arch", "arch", {"avx3", "one of ", in_use}}, [] { Context::pin_arch("avx3"); });
  check_error({ErrorCode::config, "pin_arch", "arch", {"one of ", in_use}}, [] { Context::pin_arch(""); });
  CHECK(Context::arch() == in_use);
}

#ifdef __linux__

/// The process has not used the library yet.
bool passes_in_new_process(const char* name, const char* arch) {
  const pid_t child = fork();
  if (child == 0) {
    if (arch == nullptr)
      unsetenv("ATTN_MAX_ARCH");
    else
      setenv("ATTN_MAX_ARCH", arch, 1);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execl("/proc/self/exe", "attn_tests", name, static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

TEST_CASE("new process: every use is refused", "[.][new-process]") {
  const Array x({2, 6}, 1), four({1, 1, 2, 4}, 1);
  const std::function<void()> uses[] = {
      [&] { linear(x, x); },
      [&] { softmax(x, -1); },
      [&] { layer_norm(x, nullptr, nullptr); },
      [&] { rms_norm(x, nullptr); },
      [&] { activation(x, Activation::gelu); },
      [&] { scaled_dot_product_attention(tensor_of<4>(four), tensor_of<4>(four), tensor_of<4>(four)); },
      [] { MultiHeadAttention({.embed_dim = 8, .num_heads = 2}); },
      [] { TransformerEncoder({.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 16}, .num_layers = 1}); },
      [] { Embedding({.num_embeddings = 5, .embedding_dim = 4}).similarity(1, 2); },
  };
  for (int i = 0; i < 2; ++i)
    for (const auto& use : uses) {
      INFO("use " << &use - uses);
      try {
        use();
        FAIL_CHECK("nothing was thrown");
      } catch (const Error& error) {
        const std::string message = error.what();
        CHECK(error.code() == ErrorCode::config);
        CHECK(message.find("attn: ATTN_MAX_ARCH is avx3, expected one of ") == 0);
      }
    }
  const std::pair<const char*, std::function<void()>> asked[] = {
      {"Context", [] { Context(); }},
      {"arch", [] { Context::arch(); }},
      {"int8", [] { Context::int8(); }},
      {"archs", [] { Context::archs(); }},
      {"pin_arch", [] { Context::pin_arch("sse4_2"); }},
  };
  for (const auto& [op, call] : asked) check_error({ErrorCode::config, op, "ATTN_MAX_ARCH", {"is avx3", "one of "}}, call);
  unsetenv("ATTN_MAX_ARCH");
  for (const auto& use : uses) CHECK_NOTHROW(use());
  CHECK(Context::arch() == Context::archs().back());
}

TEST_CASE("new process: each architecture can be pinned before first use", "[.][new-process]") {
  const std::string_view wanted = Context::archs().front();
  CHECK(Context::arch() == Context::archs().back());
  const Context context;
  Context::pin_arch(wanted);
  CHECK(Context::arch() == wanted);
  CHECK(kernels::best().architecture == wanted);
  const Array x({3, 5}, 1), weight({7, 5}, 2);
  CHECK(linear(x, weight).data == std::vector<float>(21, 10));
  if (Context::archs().back() != wanted) CHECK_THROWS_AS(Context::pin_arch(Context::archs().back()), Error);
}

TEST_CASE("new process: the widest architecture is chosen", "[.][new-process]") {
  CHECK(Context::arch() == Context::archs().back());
  CHECK(kernels::best().architecture == Context::archs().back());
  CHECK(Context::int8() == (Context::arch().ends_with("_vnni") ? "vpdpbusd" : "16-bit pairs"));
}

TEST_CASE("an unknown ATTN_MAX_ARCH is refused at every use, with its value and the known names", "[context]") {
  CHECK(passes_in_new_process("new process: every use is refused", "avx3"));
  // Empty counts as unset.
  CHECK(passes_in_new_process("new process: the widest architecture is chosen", ""));
  CHECK(passes_in_new_process("new process: the widest architecture is chosen", nullptr));
  CHECK(passes_in_new_process("new process: each architecture can be pinned before first use", nullptr));
  for (const std::string_view arch : Context::archs()) {
    INFO(arch);
    CHECK(passes_in_new_process("new process: the widest architecture is chosen", std::string(arch).c_str()));
    CHECK(passes_in_new_process("new process: each architecture can be pinned before first use", std::string(arch).c_str()));
  }
}

#endif

}  // namespace context_test
}  // namespace attn::test
