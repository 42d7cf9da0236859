#include "attn/models/families/vit.hpp"

// ViT (Dosovitskiy et al. 2020), transformers' ViTModel: patches as tokens, learned positions, pre-norm.
namespace attn::detail {
namespace vit {

constexpr std::string_view kTypes[] = {"vit"};
constexpr std::string_view kIgnored[] = {"embeddings.mask_token", "vit.embeddings.mask_token", "vit.pooler.", "pooler."};

}  // namespace vit

void configure_vit(const ConfigReader& config, ModelConfig& model) {
  configure_images(config, model, 16, "intermediate_size");
  if (model.task == Task::embedding) {
    model.image.pooler_size = config.whole("pooler_output_size", 1, 0x7fffffff, model.hidden_size);
    model.image.pooler_activation = config.activation("pooler_act", Activation::tanh);
  }
}

const Family kVit{.model_types = vit::kTypes,
                  .architecture = "ViT",
                  .prefix = "vit.",
                  .names = kVitNames,
                  .image_classification = {.classifier = "classifier"},
                  .ignored = vit::kIgnored,
                  .configure = &configure_vit};

}  // namespace attn::detail
