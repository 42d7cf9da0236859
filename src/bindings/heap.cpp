#include "heap.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

// operator new with a count. malloc cannot say what is in use without a walk over its heap, and the size that it tells of one block
// may change while that is in use: emmalloc gives a block the room that an aligned one after it leaves.
namespace attn::bindings {
namespace {

std::atomic<std::size_t> used{0}, peak{0};

/// Stands before what is handed out.
struct Header {
  void* block;      ///< what malloc gave
  std::size_t all;  ///< bytes asked of it
};

/// What malloc aligns to, and what all sizes are multiples of.
constexpr std::size_t kUnit = sizeof(Header);
constexpr std::size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
static_assert(kUnit == 8 && kDefaultAlignment >= kUnit);

/// No block has more: the heap ends there, code's data lie below it, and what malloc adds to a size must not wrap.
constexpr std::size_t kMost = 0xfffe'0000;

/// malloc(all), or null. emmalloc tells whether a block fits by its address plus the size, which above 4 GiB wraps: then it gives one that is
/// too small, whole and otherwise in order. Such blocks are held until the right one comes, or none.
void* block_of(std::size_t all) {
  struct Held {
    Held* next;
  };
  Held* held = nullptr;
  void* block = std::malloc(all);
  while (block != nullptr && malloc_usable_size(block) < all) {
    held = new (block) Held{held};
    block = std::malloc(all);
  }
  while (held != nullptr) std::free(std::exchange(held, held->next));
  return block;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (size > kMost) throw std::bad_alloc();
  const std::size_t all = (size + alignment + kUnit - 1) / kUnit * kUnit;
  void* const block = block_of(all);
  if (block == nullptr) throw std::bad_alloc();
  const std::size_t now = used.fetch_add(all, std::memory_order_relaxed) + all;
  std::size_t most = peak.load(std::memory_order_relaxed);
  while (most < now && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  const auto start = reinterpret_cast<std::uintptr_t>(block) + sizeof(Header);
  char* const p = reinterpret_cast<char*>((start + alignment - 1) / alignment * alignment);
  reinterpret_cast<Header*>(p)[-1] = {block, all};
  return p;
}

void release(void* p) noexcept {
  if (p == nullptr) return;
  const auto [block, all] = static_cast<Header*>(p)[-1];
  used.fetch_sub(all, std::memory_order_relaxed);
  std::free(block);
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
