#pragma once

#include <cstdint>

namespace attn {

/// Pixels of an image, row by row without gaps. Refers to the caller's memory.
/// @code
/// const std::vector<std::uint8_t> pixels(40 * 50 * 3, 128);
/// const attn::ImageView grey{pixels.data(), 40, 50, 3};
/// std::cout << grey.height;  // 40
/// @endcode
struct ImageView {
  const std::uint8_t* data = nullptr;
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 3;  ///< 1: grey, 3: RGB, 4: RGBA, where A has no effect
};

}  // namespace attn
