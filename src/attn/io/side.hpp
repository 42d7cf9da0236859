#pragma once

#include <cstdint>

namespace attn {

/// Of a text.
enum class Side : std::uint8_t { left, right };

}  // namespace attn
