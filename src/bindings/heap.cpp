#include "heap.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

// operator new with a count. malloc cannot say what is in use without a walk over its heap, and the size that it tells of one block
// may change while that is in use: emmalloc gives a block the room that an aligned one after it leaves.
namespace attn::bindings {
namespace {

std::atomic<std::size_t> used{0}, peak{0};

/// Stands before every block, at the end of a piece as long as the alignment.
struct Header {
  std::size_t alignment;
  std::size_t all;  ///< bytes, that piece included
};

constexpr std::size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
static_assert(sizeof(Header) <= kDefaultAlignment);

void* allocate(std::size_t size, std::size_t alignment) {
  const std::size_t all = size + alignment;
  void* block = nullptr;
  if (all < size || posix_memalign(&block, alignment, all) != 0) throw std::bad_alloc();
  const std::size_t now = used.fetch_add(all, std::memory_order_relaxed) + all;
  std::size_t most = peak.load(std::memory_order_relaxed);
  while (most < now && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  char* const p = static_cast<char*>(block) + alignment;
  reinterpret_cast<Header*>(p)[-1] = {alignment, all};
  return p;
}

void release(void* p) noexcept {
  if (p == nullptr) return;
  const auto [alignment, all] = static_cast<Header*>(p)[-1];
  used.fetch_sub(all, std::memory_order_relaxed);
  std::free(static_cast<char*>(p) - alignment);
}

}  // namespace

std::size_t heap_used() { return used.load(std::memory_order_relaxed); }
std::size_t heap_peak() { return peak.load(std::memory_order_relaxed); }

}  // namespace attn::bindings

using attn::bindings::allocate;
using attn::bindings::release;

void* operator new(std::size_t size) { return allocate(size, attn::bindings::kDefaultAlignment); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
