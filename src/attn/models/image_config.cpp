#include "attn/models/image_config.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "attn/models/family.hpp"

namespace attn::detail {

std::pair<std::int64_t, std::int64_t> image_sides(const ConfigReader& config, const char* name, std::int64_t otherwise) {
  const Json* const json = config.find(name);
  const Json::Array* const list = json != nullptr ? json->array() : nullptr;
  if (list == nullptr) {
    const std::int64_t side = config.whole(name, 1, kMostImageSide, otherwise);
    return {side, side};
  }
  const auto side = [&](std::size_t i) {
    const double* const number = i < list->size() && list->size() == 2 ? (*list)[i].number() : nullptr;
    if (number == nullptr || !(*number >= 1) || !(*number <= static_cast<double>(kMostImageSide)) || std::floor(*number) != *number)
      config.refuse(ErrorCode::config, name, {"a number from 1 to ", kMostImageSide, ", or a height and a width"}, {"another list"});
    return static_cast<std::int64_t>(*number);
  };
  return {side(0), side(1)};
}

void configure_images(const ConfigReader& config, ModelConfig& model, std::int64_t patch_size, const char* intermediate_size) {
  configure_sizes(config, model, {.vocab_size = nullptr, .intermediate_size = intermediate_size, .positions = nullptr});
  model.attention_bias = config.flag("qkv_bias", true);
  model.positions = PositionRows::none;
  model.norm_first = true;

  ImageConfig& image = model.image;
  image.channels = config.whole("num_channels", 1, 64, 3);
  std::tie(image.height, image.width) = image_sides(config, "image_size", 224);
  std::tie(image.patch_height, image.patch_width) = image_sides(config, "patch_size", patch_size);
  if (image.patch_height > image.height || image.patch_width > image.width)
    config.refuse(ErrorCode::config, "patch_size", {"at most the image size, ", std::min(image.height, image.width)},
                  {std::max(image.patch_height, image.patch_width)});
}

}  // namespace attn::detail
