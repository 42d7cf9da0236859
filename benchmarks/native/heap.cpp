#include "heap.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#if defined(__APPLE__)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace {

std::atomic<bool> is_counting = false;
std::atomic<std::int64_t> used = 0, most = 0, allocations = 0;

std::int64_t size_of_block(void* p) {
#if defined(__APPLE__)
  return static_cast<std::int64_t>(malloc_size(p));
#else
  return static_cast<std::int64_t>(malloc_usable_size(p));
#endif
}

void* added(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  if (is_counting) {
    ++allocations;
    const std::int64_t now = used += size_of_block(p);
    for (std::int64_t before = most; before < now && !most.compare_exchange_weak(before, now);) {
    }
  }
  return p;
}

void remove(void* p) {
  if (is_counting && p != nullptr) used -= size_of_block(p);
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return added(std::malloc(std::max<std::size_t>(size, 1))); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return added(std::aligned_alloc(unit, (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit));
}
void operator delete(void* p) noexcept { remove(p); }
void operator delete(void* p, std::size_t) noexcept { remove(p); }
void operator delete(void* p, std::align_val_t) noexcept { remove(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { remove(p); }

HeapUse heap_use_of(const std::function<void()>& call) {
  used = most = allocations = 0;
  is_counting = true;
  call();
  is_counting = false;
  return {most, allocations};
}
