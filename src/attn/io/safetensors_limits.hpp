#pragma once

#include <cstddef>

namespace attn::detail {

// Shared by reader and writer, so that every written file can be read. Only files made to exhaust memory exceed them.
inline constexpr std::size_t kMaxHeader = 16 << 20;
inline constexpr std::size_t kMaxTensors = 100'000;

}  // namespace attn::detail
