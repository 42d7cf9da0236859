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

/// A rectangle in an image, in its pixels. The sides may be fractions.
/// @code
/// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
/// const std::vector<std::uint8_t> pixels(40 * 50 * 3, 128);
/// const attn::ImageCrop crop = model.preprocess({{pixels.data(), 40, 50, 3}}).crops.at(0);
/// std::cout << crop.left << ' ' << crop.top << ' ' << crop.width << ' ' << crop.height;  // 0 0 50 40
/// @endcode
struct ImageCrop {
  double left = 0, top = 0, width = 0, height = 0;
};

}  // namespace attn
