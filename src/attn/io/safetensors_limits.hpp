#pragma once

#include <cstddef>

namespace attn::detail {

// The reader and the writer share the limits, so that every written file can be read. No model comes near them; a
// larger file is made to exhaust memory.
inline constexpr std::size_t kMaxHeader = 16 << 20;
inline constexpr std::size_t kMaxTensors = 100'000;

}  // namespace attn::detail
