#pragma once

#include <cstddef>

namespace attn::bindings {

/// Current and peak number of heap bytes that C++ uses, all of which come through operator new.
std::size_t heap_used();
std::size_t heap_peak();

}  // namespace attn::bindings
