#include "running.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "attn/tensor/error.hpp"

namespace attn::python {
namespace {

// Guarded by the GIL.
unsigned process_threads = 1;

constexpr std::size_t kCachedContexts = 4;

/// Most recently used first. Never destroyed: threads that Python does not join may use them.
std::vector<std::pair<unsigned, Context>>& contexts() {
  static auto& all = *new std::vector<std::pair<unsigned, Context>>;
  return all;
}

void check_threads(unsigned count) {
  if (count > kMaxThreads) detail::fail(ErrorCode::config, "set_num_threads", "count", {"a number from 0 to ", kMaxThreads}, {count});
}

std::atomic<std::thread::id> ending;
std::atomic<int> unlocked{0};

void wait_for_the_end() {
  const std::thread::id by = ending.load();
  if (by == std::thread::id() || by == std::this_thread::get_id()) return;
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

struct Process {
  std::mutex mutex;  ///< guards this and every Lock; never held while waiting for the GIL
  std::condition_variable changed;
  int running = 0;  ///< computing threads, neither in a callback nor waiting for a Lock
  std::atomic<bool> forking{false};

  void start_running() {
    std::unique_lock guard(mutex);
    changed.wait(guard, [&] { return !forking; });
    ++running;
  }
  void stop_running() {
    const std::lock_guard guard(mutex);
    --running;
    changed.notify_all();
  }
};

// Replaced in a child of fork(): glibc's condition variable would wait for threads that the child lacks.
Process* process = new Process;
unsigned forks = 0;

thread_local bool is_running = false;
/// In a signal handler during a computation; a fork() there must not wait for that computation.
thread_local bool is_inside = false;
std::atomic<unsigned long> main_thread{0};
/// Outermost first, and whether each changes its object.
thread_local std::vector<std::pair<const Lock*, bool>> inside;

void before_fork() {
  const nb::gil_scoped_release released;
  std::unique_lock guard(process->mutex);
  process->changed.wait(guard, [] { return !process->forking; });
  process->forking = true;
  process->changed.wait(guard, [] { return process->running == (is_inside ? 1 : 0); });
}

void after_fork_in_parent() {
  const std::lock_guard guard(process->mutex);
  process->forking = false;
  process->changed.notify_all();
}

void after_fork_in_child() {
  process = new Process;
  process->running = is_inside ? 1 : 0;
  main_thread = PyThread_get_thread_ident();
  ++forks;
  for (const auto& [lock, changes] : inside) lock->leave_behind(!changes, changes);
}

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
    if (all.size() > kCachedContexts) all.pop_back();
  }
  return all.front().second;
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  ++unlocked;
  process->start_running();
  is_running = true;
}

Unlocked::~Unlocked() {
  is_running = false;
  process->stop_running();
  wait_for_the_end();
  --unlocked;
  PyEval_RestoreThread(state_);
}

// A thread with the GIL may destroy a PythonTokenizer.
Locked::Locked() : was_running_(std::exchange(is_running, false)) {
  if (was_running_) process->stop_running();
  wait_for_the_end();
  acquired_.emplace();
}

Locked::~Locked() {
  acquired_.reset();
  if (!was_running_) return;
  process->start_running();
  is_running = true;
}

void watch_process() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    ending.store(std::this_thread::get_id());
    if (unlocked.load() == 0) return;
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    PyEval_RestoreThread(state);
  }));
  nb::module_::import_("os").attr("register_at_fork")(nb::arg("before") = nb::cpp_function(&before_fork),
                                                      nb::arg("after_in_parent") = nb::cpp_function(&after_fork_in_parent),
                                                      nb::arg("after_in_child") = nb::cpp_function(&after_fork_in_child));
}

double Signals::now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void Signals::check() {
  if (now() - last_ < 0.05 && !process->forking) return;
  const Locked locked;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  last_ = now();
}

void Signals::check_inside() {
  if (now() - last_ < 0.05) return;
  wait_for_the_end();
  const nb::gil_scoped_acquire acquired;
  is_inside = true;
  const bool is_raised = PyErr_CheckSignals() != 0;
  is_inside = false;
  if (is_raised) nb::raise_python_error();
  last_ = now();
}

Interruptions::Interruptions(detail::Interruptible where) {
  if (main_thread == PyThread_get_thread_ident())
    interruption_.emplace(where, [](void* signals) { static_cast<Signals*>(signals)->check_inside(); }, &signals_);
}

void Lock::leave_behind(bool is_read_here, bool is_changed_here) const {
  if (forks_ == forks) return;
  forks_ = forks;
  is_torn_ = is_torn_ || (is_changing_ && !is_changed_here);
  is_changing_ = is_changed_here;
  readers_ = is_read_here ? 1 : 0;
}

void Lock::acquire(std::string_view op, bool changes) const {
  std::unique_lock guard(process->mutex);
  leave_behind(false, false);
  if (is_torn_)
    detail::fail(ErrorCode::busy, op, "the object", {"one that no thread changes during fork()"}, {"half changed by a thread of the parent process"},
                 "Load it again in this process");
  const auto is_free = [&] { return !is_changing_ && (!changes || readers_ == 0); };
  if (!is_free()) {
    --process->running;
    process->changed.notify_all();
    process->changed.wait(guard, [&] { return !process->forking && is_free(); });
    ++process->running;
  }
  if (changes)
    is_changing_ = true;
  else
    ++readers_;
}

void Lock::release(bool changes) const {
  const std::lock_guard guard(process->mutex);
  if (changes)
    is_changing_ = false;
  else
    --readers_;
  process->changed.notify_all();
}

Lock::Held::Held(const Lock& lock, std::string_view op, bool changes) : lock_(lock), changes_(changes) {
  const auto outer = std::find_if(inside.begin(), inside.end(), [&](const auto& each) { return each.first == &lock; });
  is_outermost_ = outer == inside.end();
  if (!is_outermost_ && (changes || outer->second))
    detail::fail(ErrorCode::busy, op, "the caller", {"code outside that call"}, {"a callback of another call of this object"},
                 "Wait until that call has ended");
  inside.reserve(inside.size() + 1);
  if (is_outermost_) lock.acquire(op, changes);
  inside.emplace_back(&lock, changes);
}

Lock::Held::~Held() {
  inside.pop_back();
  if (is_outermost_) lock_.release(changes_);
}

}  // namespace attn::python
