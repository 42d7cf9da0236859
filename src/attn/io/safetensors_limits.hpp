#pragma once

#include <cstddef>

namespace attn::detail {

// What the writer writes the reader takes, so both keep to these. A header of 16 MiB holds more tensors than any model has; a larger one, or
// more tensors, is a file made to exhaust memory.
inline constexpr std::size_t kMaxHeader = 16 << 20;
inline constexpr std::size_t kMaxTensors = 100'000;

}  // namespace attn::detail
