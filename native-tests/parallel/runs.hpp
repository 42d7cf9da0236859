#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "attn/parallel/thread_pool.hpp"
#include "support/call.hpp"
#include "support/random.hpp"

// ThreadSanitizer ends a forked child that starts a thread.
#if (defined(__unix__) || defined(__APPLE__)) && !defined(__SANITIZE_THREAD__)
#define ATTN_TESTS_FORK
#include <sys/wait.h>
#include <unistd.h>
// AddressSanitizer (GCC 12) does not hold its locks at a fork, so a child can hang if another thread allocates.
#ifndef ATTN_TESTS_SANITIZE_ADDRESS
#define ATTN_TESTS_FORK_DURING_CALLS
#endif
#endif

#ifdef ATTN_TESTS_FORK
namespace attn::test {
inline bool is_child = false;
}
/// LeakSanitizer would take seconds in children and fail.
extern "C" [[gnu::used]] inline int __lsan_is_turned_off() { return attn::test::is_child; }
#endif

namespace attn::test {

struct Threads {
  explicit Threads(unsigned count) { set_num_threads(count); }
  ~Threads() { set_num_threads(1); }
};

inline std::vector<int> calls_of(std::size_t tasks, unsigned workers) {
  const auto calls = std::make_unique<std::atomic<int>[]>(tasks + 1);
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    if (worker < std::max(workers, 1U))
      calls[task].fetch_add(1);
    else
      calls[task].store(-1000);
  });
  std::vector<int> counts;
  for (std::size_t task = 0; task < tasks; ++task) counts.push_back(calls[task].load());
  return counts;
}

inline bool two_meet() {
  std::atomic<int> inside{0};
  std::atomic<bool> met{true};
  parallel::run(2, 2, [&](std::size_t, unsigned) noexcept {
    inside.fetch_add(1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside.load() < 2 && met.load()) {
      if (std::chrono::steady_clock::now() > until) met.store(false);
      std::this_thread::yield();
    }
  });
  return met.load();
}

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
    all.push_back(linear(slice(slice(x, 0), 0), Array({512, 96}, 0.25F)));
    return all;
  }

  AttentionCase c;
  MultiHeadAttention layer;
  Array x, weight, bias;
};

#ifdef ATTN_TESTS_FORK

/// Returns the child's status as a shell does: 128 plus the signal; -1 if there is no child. A child that hangs ends
/// after a minute. No Catch2 assertions, because children also call this.
template <class Body>
int status_of_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    is_child = true;
    // Catch2 would report the child as a failed test.
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGTERM}) std::signal(signal, SIG_DFL);
    // The JUnit reporter's buffers no longer exist at exit.
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

#endif

}  // namespace attn::test
