#pragma once

#include <cstddef>

namespace attn::bindings {

/// Bytes that C++ uses on the heap now, and at most so far. All of them come through operator new.
std::size_t heap_used();
std::size_t heap_peak();

}  // namespace attn::bindings
