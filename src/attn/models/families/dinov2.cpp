#include "attn/models/family.hpp"

// DINOv2 (Oquab et al. 2023, Darcet et al. 2023), transformers' Dinov2Model and Dinov2WithRegistersModel: ViT with LayerScale (Touvron et al. 2021),
// in the largest model with a gate, and optionally with register tokens.
namespace attn::detail {
namespace dinov2 {

constexpr std::string_view kTypes[] = {"dinov2"}, kRegisterTypes[] = {"dinov2_with_registers"};
constexpr std::string_view kIgnored[] = {"embeddings.mask_token", "dinov2.embeddings.mask_token", "dinov2_with_registers.embeddings.mask_token"};

constexpr TensorNames names(bool gated) {
  TensorNames all{.layers = "encoder.layer.",
                  .query = "attention.attention.query",
                  .key = "attention.attention.key",
                  .value = "attention.attention.value",
                  .attention_output = "attention.output.dense",
                  .norm1 = "norm1",
                  .linear1 = "mlp.fc1",
                  .linear2 = "mlp.fc2",
                  .norm2 = "norm2",
                  .post_norm1 = "layer_scale1.lambda1",
                  .post_norm2 = "layer_scale2.lambda1",
                  .final_norm = "layernorm"};
  if (gated) {
    all.linear1 = {};
    all.gate_linear1 = "mlp.weights_in";
    all.linear2 = "mlp.weights_out";
  }
  return all;
}

extern const Family kGated, kGatedRegisters;

void configure(const ConfigReader& config, ModelConfig& model) {
  model.layer_norm_eps = 1e-6F;
  configure_images(config, model, 14, nullptr);
  model.layer.layer_scale = true;
  model.image.joins_mean = true;
  // transformers truncates the product of two floats.
  const double width = static_cast<double>(model.hidden_size) * config.positive("mlp_ratio", 4);
  if (!(width >= 1) || !(width < 0x7fffffff))
    config.refuse(ErrorCode::config, "mlp_ratio", {"a ratio for a hidden layer of 1 to 2147483646 numbers"}, {width, " numbers"});
  model.intermediate_size = static_cast<std::int64_t>(width);
  const bool has_registers = model.family->model_types.data() == kRegisterTypes;
  if (has_registers) {
    model.image.registers = config.whole("num_register_tokens", 0, 1 << 16, 4);
    model.image.smooth_positions = true;
  }
  model.gated = config.flag("use_swiglu_ffn", false);
  if (!model.gated) return;
  model.hidden_act = Activation::silu;
  model.intermediate_size = (model.intermediate_size * 2 / 3 + 7) / 8 * 8;
  model.family = has_registers ? &kGatedRegisters : &kGated;
}

constexpr Family family(bool has_registers, bool gated) {
  return {.model_types = has_registers ? kRegisterTypes : kTypes,
          .architecture = has_registers ? "Dinov2WithRegisters" : "Dinov2",
          .prefix = has_registers ? "dinov2_with_registers." : "dinov2.",
          .names = names(gated),
          .image_classification = {.classifier = "classifier"},
          .ignored = kIgnored,
          .configure = &configure};
}

const Family kGated = family(false, true), kGatedRegisters = family(true, true);

}  // namespace dinov2

const Family kDinov2 = dinov2::family(false, false), kDinov2WithRegisters = dinov2::family(true, false);

}  // namespace attn::detail
