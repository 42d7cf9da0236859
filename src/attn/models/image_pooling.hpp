#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace attn {

/// How an image's hidden states become a vector.
/// @code
/// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
/// const std::vector<std::uint8_t> pixels(32 * 32 * 3);
/// auto vectors = model.embed({{pixels.data(), 32, 32, 3}}, {.pooling = attn::ImagePooling::mean});
/// std::cout << vectors.shape(1);  // 32
/// @endcode
enum class ImagePooling : std::uint8_t {
  cls,     ///< the first token of the last hidden state
  mean,    ///< of the patches
  pooler,  ///< the dense layer on [CLS] of a model without a head
};

namespace detail {

inline constexpr std::array<std::string_view, 3> kImagePoolingNames{"cls", "mean", "pooler"};

}  // namespace detail
}  // namespace attn
