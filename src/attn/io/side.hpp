#pragma once

#include <cstdint>

namespace attn {

/// Side of a text.
enum class Side : std::uint8_t { left, right };

}  // namespace attn
