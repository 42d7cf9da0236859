#pragma once

#include <mutex>

// Process-wide lists. Native builds only. Internal.
namespace attn::parallel {

class Threads;

/// Locks the lists. Hold the lock while you change or iterate over a list. fork() waits for it, so that it is not
/// locked forever in a child. Throws std::bad_alloc on the first call if the system has no memory for the fork
/// handlers.
std::unique_lock<std::mutex> lock_lists();

/// Makes children of fork() start without the pool of `threads`, until forget_forks().
void watch_forks(Threads& threads);
void forget_forks(Threads& threads);

}  // namespace attn::parallel
