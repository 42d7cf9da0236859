#pragma once

#include <cstddef>

namespace attn::detail {

// Limits of both the reader and the writer, so that every written file can be read. A header of 16 MiB holds more
// tensors than any model has; a larger one, or more tensors, indicates a file made to exhaust memory.
inline constexpr std::size_t kMaxHeader = 16 << 20;
inline constexpr std::size_t kMaxTensors = 100'000;

}  // namespace attn::detail
