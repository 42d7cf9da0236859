#pragma once

#include <cstdint>
#include <functional>

/// What a call allocates: the most bytes at a time beyond those before it, and how often. All of the library's memory comes from operator
/// new, which heap.cpp replaces for the whole program.
struct HeapUse {
  std::int64_t bytes = 0, allocations = 0;
};
HeapUse heap_use_of(const std::function<void()>& call);
