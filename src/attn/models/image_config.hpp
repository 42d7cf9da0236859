#pragma once

#include <cstdint>
#include <utility>

#include "attn/ops/activation.hpp"

namespace attn::detail {

class ConfigReader;
struct ModelConfig;

/// Patch embedding and head of an image model. `channels` is 0 for text models.
struct ImageConfig {
  std::int64_t channels = 0, height = 0, width = 0;  ///< of the images that the positions are for
  std::int64_t patch_height = 0, patch_width = 0;
  bool distillation = false;  ///< a second token after [CLS]
  std::int64_t registers = 0;
  bool smooth_positions = false;  ///< antialiased and with PIL's bicubic, as DINOv2 with registers
  bool joins_mean = false;        ///< the classifier reads [CLS] and the mean of the patches
  bool two_heads = false;         ///< logits are the mean of a classifier of each token
  std::int64_t pooler_size = 0;   ///< of a dense layer on [CLS] in models without a head; 0: none
  Activation pooler_activation = Activation::tanh;

  explicit operator bool() const { return channels > 0; }
  std::int64_t rows() const { return height / patch_height; }
  std::int64_t columns() const { return width / patch_width; }
  /// [CLS] and distillation token, which have positions.
  std::int64_t placed_tokens() const { return distillation ? 2 : 1; }
  /// Tokens before the patches.
  std::int64_t first_patch() const { return placed_tokens() + registers; }
  std::int64_t patch_values() const { return channels * patch_height * patch_width; }
};

inline constexpr std::int64_t kMostImageSide = 1 << 14;

/// Reads a number for both sides, or [height, width].
std::pair<std::int64_t, std::int64_t> image_sides(const ConfigReader& config, const char* name, std::int64_t otherwise);

/// Reads config.json of ViT and its relatives. layer_norm_eps keeps its value if it is missing.
void configure_images(const ConfigReader& config, ModelConfig& model, std::int64_t patch_size, const char* intermediate_size);

}  // namespace attn::detail
