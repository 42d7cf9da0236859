#pragma once

#include <cstddef>

namespace attn::bindings {

/// Heap bytes from operator new, which serves all of C++.
std::size_t heap_used();
std::size_t heap_peak();

}  // namespace attn::bindings
