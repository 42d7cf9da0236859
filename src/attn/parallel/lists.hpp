#pragma once

#include <mutex>

// Lists of what there is in the whole process. Natively only. Internal.
namespace attn::parallel {

class Threads;

/// Whoever changes or walks such a list holds this meanwhile. fork() waits for it, so that no child finds it held for ever. Throws
/// std::bad_alloc the first time, where the system has no memory for that.
std::unique_lock<std::mutex> lock_lists();

/// Children of fork() begin without the pool of these, until forget_forks().
void watch_forks(Threads& threads);
void forget_forks(Threads& threads);

}  // namespace attn::parallel
