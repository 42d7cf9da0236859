#include "heap.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

// Counts in operator new: malloc would walk its heap, and emmalloc may change malloc_usable_size of a used block.
namespace attn::bindings {
namespace {

std::atomic<std::size_t> used{0}, peak{0};

struct Header {
  void* block;
  std::size_t all;
};

constexpr std::size_t kUnit = sizeof(Header);
constexpr std::size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
static_assert(kUnit == 8 && kDefaultAlignment >= kUnit);

/// Largest block: the heap ends there, static data is below, and malloc's additions must not wrap.
constexpr std::size_t kMost = 0xfffe'0000;

/// emmalloc's address plus size wraps above 4 GiB, so a block may be too small. Holds such blocks until one is large
/// enough.
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
