#pragma once

#include <cstdint>
#include <functional>

/// Additional peak bytes and number of allocations of a call. The library allocates by operator new only, which
/// heap.cpp replaces for the whole program.
struct HeapUse {
  std::int64_t bytes = 0, allocations = 0;
};
HeapUse heap_use_of(const std::function<void()>& call);
