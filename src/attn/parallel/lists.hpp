#pragma once

#include <mutex>

namespace attn::parallel {

class Threads;

/// Hold the lock to read or change a list. fork() waits for it, so that no child inherits it locked. The first call may
/// throw std::bad_alloc.
std::unique_lock<std::mutex> lock_lists();

/// Until forget_forks(), children of fork() start without the pool of `threads`.
void watch_forks(Threads& threads);
void forget_forks(Threads& threads);

}  // namespace attn::parallel
