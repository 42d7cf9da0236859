#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "attn/models/image_view.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// Resizes, crops and normalizes images as preprocessor_config.json specifies and transformers' image processors do.
class ImageProcessor {
 public:
  /// `architecture` selects the defaults: ViT, DeiT or Dinov2. Throws FORMAT, CONFIG, UNSUPPORTED.
  ImageProcessor(std::span<const std::uint8_t> preprocessor_config, std::string_view architecture);

  /// (3,height,width), for an image of this size. Throws MEMORY if a call with so many results would exceed the memory limit.
  Shape check(std::string_view op, const ImageView& image, std::int64_t results = 1) const;
  /// The part of the image that the result shows.
  ImageCrop crop(const ImageView& image) const;
  /// An image smaller than the crop gets a black border.
  void run(const ImageView& image, float* pixel_values) const;

 private:
  struct Size {
    std::int64_t height = 0, width = 0;
  };
  Size resized(const ImageView& image) const;
  Size cropped(const ImageView& image) const { return crop_.height > 0 ? crop_ : resized(image); }

  Size size_ = {};                                     // zero: not resized, unless shortest_ is given
  std::int64_t shortest_ = 0;                          // shorter side, which keeps the aspect ratio
  int filter_ = 2;                                     // of PIL: bilinear 2, bicubic 3
  Size crop_ = {};                                     // zero: none
  std::array<std::array<float, 256>, 3> values_ = {};  // of each level of a channel
};

}  // namespace attn::detail
