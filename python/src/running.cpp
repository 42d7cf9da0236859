#include "running.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "attn/tensor/error.hpp"

namespace attn::python {
namespace {

// All of it is the interpreter's, whose lock nobody holds in the child of a fork().
unsigned process_threads = 1;

constexpr std::size_t kKeptContexts = 4;

/// By their numbers of threads, the last one used first. Left to the end of the process: calls of threads that Python does not wait for may still use
/// them.
std::vector<std::pair<unsigned, Context>>& contexts() {
  static auto& all = *new std::vector<std::pair<unsigned, Context>>;
  return all;
}

void check_threads(unsigned count) {
  if (count > kMaxThreads) detail::fail(ErrorCode::config, "set_num_threads", "count", {"a number from 0 to ", kMaxThreads}, {count});
}

/// The thread that ends the interpreter, once it does, and how many are without its lock.
std::atomic<std::thread::id> ending;
std::atomic<int> unlocked{0};

void wait_for_the_end() {
  const std::thread::id by = ending.load();
  if (by == std::thread::id() || by == std::this_thread::get_id()) return;
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Locks that this thread is inside of, and whether to change.
thread_local std::vector<std::pair<const Lock*, bool>> inside;

}  // namespace

void set_num_threads(unsigned count) {
  check_threads(count);
  process_threads = count;
}
unsigned get_num_threads() { return process_threads != 0 ? process_threads : std::max(1U, std::thread::hardware_concurrency()); }

Context context_of(std::optional<unsigned> threads) {
  const unsigned count = threads.value_or(process_threads);
  auto& all = contexts();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == count; });
  if (found != all.end()) {
    std::rotate(all.begin(), found, found + 1);
  } else {
    all.emplace(all.begin(), count, Context({.num_threads = count}));
    if (all.size() > kKeptContexts) all.pop_back();
  }
  return all.front().second;
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) { ++unlocked; }

Unlocked::~Unlocked() {
  wait_for_the_end();
  --unlocked;
  PyEval_RestoreThread(state_);
}

Locked::Locked() {
  wait_for_the_end();
  acquired_.emplace();
}

void watch_end() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    ending.store(std::this_thread::get_id());
    if (unlocked.load() == 0) return;
    // Threads that have asked for the lock already get it now.
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    PyEval_RestoreThread(state);
  }));
}

double Signals::now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void Signals::check() {
  if (now() - last_ < 0.05) return;
  const Locked locked;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  last_ = now();
}

Lock::Held::Held(const Lock& lock, std::string_view op, bool changes) : lock_(lock), changes_(changes) {
  const auto outer = std::find_if(inside.begin(), inside.end(), [&](const auto& each) { return each.first == &lock; });
  is_outermost_ = outer == inside.end();
  if (!is_outermost_ && (changes || outer->second))
    detail::fail(ErrorCode::busy, op, "the caller", {"none: that call has to end first"}, {"a callback of another call of this object"});
  inside.emplace_back(&lock, changes);
  if (!is_outermost_) return;
  if (changes)
    lock.mutex_.lock();
  else
    lock.mutex_.lock_shared();
}

Lock::Held::~Held() {
  inside.pop_back();
  if (!is_outermost_) return;
  if (changes_)
    lock_.mutex_.unlock();
  else
    lock_.mutex_.unlock_shared();
}

}  // namespace attn::python
