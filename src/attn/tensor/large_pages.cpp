#include "attn/tensor/large_pages.hpp"

#if defined(__linux__)
#include <sys/mman.h>

#include <cstdint>
#endif

namespace attn::detail {

void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Size on x86-64 and most of arm64. Pages at the ends are shared with other memory.
  constexpr std::uintptr_t kLarge = std::uintptr_t{1} << 21;
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(memory), first = (address + kLarge - 1) / kLarge * kLarge;
  if (bytes < 2 * kLarge || first + kLarge > address + bytes) return;
  (void)::madvise(reinterpret_cast<void*>(first), (address + bytes - first) / kLarge * kLarge, MADV_HUGEPAGE);
#endif
}

}  // namespace attn::detail
