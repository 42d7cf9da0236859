#pragma once

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstddef>
#include <ctime>

#include "fuzz.hpp"

namespace attn::fuzz {

class Cost {
 public:
  Cost() : started_(std::clock()) {
    static const bool hooked = __sanitizer_install_malloc_and_free_hooks(&allocated, &freed) > 0;
    require(hooked, "allocations are counted");
    live_ = most_ = 0;
  }

  void check(std::size_t bytes, std::size_t memory_per_byte, double microseconds_per_byte, const char* what) const {
    constexpr std::size_t kMoreMemory = 4 << 20;
    constexpr double kMoreTime = 0.5;
    const double seconds = static_cast<double>(std::clock() - started_) / CLOCKS_PER_SEC;
    const bool holds = most_ <= static_cast<std::ptrdiff_t>(memory_per_byte * bytes + kMoreMemory) &&
                       seconds <= microseconds_per_byte * 1e-6 * static_cast<double>(bytes) + kMoreTime;
    if (!holds) std::fprintf(stderr, "fuzz: %zu bytes took %td bytes and %.2f s\n", bytes, most_, seconds);
    require(holds, what);
  }

 private:
  static void allocated(const volatile void*, std::size_t size) { most_ = std::max(most_, live_ += static_cast<std::ptrdiff_t>(size)); }
  static void freed(const volatile void* memory) {
    if (memory != nullptr) live_ -= static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(memory));
  }

  static inline std::ptrdiff_t live_ = 0, most_ = 0;
  std::clock_t started_;
};

}  // namespace attn::fuzz
