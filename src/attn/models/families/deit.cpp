#include "attn/models/families/vit.hpp"

// DeiT (Touvron et al. 2021), transformers' DeiTModel: ViT with a distillation token, whose classifier the teacher trained.
namespace attn::detail {
namespace deit {

constexpr std::string_view kTypes[] = {"deit"};
constexpr std::string_view kIgnored[] = {"embeddings.mask_token", "deit.embeddings.mask_token", "deit.pooler.", "pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_vit(config, model);
  model.image.distillation = true;
  if (model.task == Task::embedding) return;
  const std::string* const architecture = config.find("architectures")->array()->front().string();
  model.image.two_heads = architecture != nullptr && architecture->ends_with("WithTeacher");
}

}  // namespace deit

const Family kDeit{.model_types = deit::kTypes,
                   .architecture = "DeiT",
                   .prefix = "deit.",
                   .names = kVitNames,
                   .image_classification = {.classifier = "classifier"},
                   .ignored = deit::kIgnored,
                   .configure = &deit::configure};

}  // namespace attn::detail
