#include "attn/parallel/lists.hpp"

#include <new>

#include "attn/parallel/threads.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define ATTN_CAN_FORK
#include <pthread.h>
#endif

namespace attn::parallel {
namespace {

/// Never destroyed: layers that are static objects leave their list at exit.
std::mutex& mutex() {
  static std::mutex& kept = *new std::mutex;
  return kept;
}
Threads* watched = nullptr;

#ifdef ATTN_CAN_FORK
void before_fork() { mutex().lock(); }
void after_fork() { mutex().unlock(); }
void in_child() {
  for (Threads* threads = watched; threads != nullptr; threads = threads->next) threads->leave_pool_behind();
  mutex().unlock();
}
#endif

}  // namespace

std::unique_lock<std::mutex> lock_lists() {
#ifdef ATTN_CAN_FORK
  static const bool handled = [] {
    if (pthread_atfork(before_fork, after_fork, in_child) != 0) throw std::bad_alloc();
    return true;
  }();
  static_cast<void>(handled);
#endif
  return std::unique_lock(mutex());
}

void watch_forks(Threads& threads) {
  const auto lock = lock_lists();
  if (threads.watched) return;
  threads.watched = true;
  threads.next = watched;
  if (watched != nullptr) watched->before = &threads;
  watched = &threads;
}

void forget_forks(Threads& threads) {
  if (!threads.watched) return;
  const auto lock = lock_lists();
  threads.watched = false;
  (threads.before != nullptr ? threads.before->next : watched) = threads.next;
  if (threads.next != nullptr) threads.next->before = threads.before;
}

}  // namespace attn::parallel
