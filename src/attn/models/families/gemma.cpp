#include <algorithm>
#include <cmath>

#include "attn/models/families/llama.hpp"

// Gemma 2 and the text model of Gemma 3 (Gemma Team 2024, 2025), transformers' Gemma2Model and Gemma3TextModel: norms around each part that multiply
// by 1 + weight, windows, scaled embeddings; softcaps (2), head norms and two RoPE bases (3).
namespace attn::detail {
namespace gemma {

constexpr std::string_view kTypes2[] = {"gemma2"}, kTypes3[] = {"gemma3_text"};
constexpr std::string_view kIgnored[] = {"lm_head."};
constexpr const char* kBidirectional = "use_bidirectional_attention";
constexpr std::string_view kBuffers[] = {".rotary_emb.inv_freq", ".embed_scale"};

float softcap(const ConfigReader& config, const char* name, double otherwise) {
  return config.is_null(name) || (otherwise == 0 && !config.has(name)) ? 0 : static_cast<float>(config.positive(name, otherwise));
}

/// A layer has a window unless its number, from 1, is a multiple of `period`.
void configure(const ConfigReader& config, ModelConfig& model, std::int64_t period) {
  model.hidden_act = config.activation("hidden_activation", Activation::gelu_tanh);
  if (model.head_dim == 0) model.head_dim = 256;
  model.attention_bias = model.attention_output_bias = config.flag("attention_bias", false);
  model.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  model.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(model.hidden_size)));
  model.layer.post_norms = true;
  model.layer.norm_offset = 1;
  model.layer.scale = static_cast<float>(1 / std::sqrt(config.positive("query_pre_attn_scalar", 256)));
  configure_windows(config, model, !config.is_null("sliding_window"), 0, period);
}

void configure_2(const ConfigReader& config, ModelConfig& model) {
  configure_llama(config, model, 8192);
  config.only_false(kBidirectional);
  configure(config, model, 2);
  model.attention_softcap = softcap(config, "attn_logit_softcapping", 50);
  model.logit_softcap = softcap(config, "final_logit_softcapping", 30);
}

void configure_3(const ConfigReader& config, ModelConfig& model) {
  configure_llama(config, model, 131'072, 0);
  model.layer.head_norms = true;
  const double local_theta = configure_rope_by_layer_type(config, model, 1'000'000, 10'000);
  configure(config, model, config.whole("sliding_window_pattern", 1, 0x7fffffff, 6));
  model.logit_softcap = softcap(config, "final_logit_softcapping", 0);
  const bool is_bidirectional = config.flag(kBidirectional, false);
  if (is_bidirectional && model.task != Task::embedding)
    config.refuse(ErrorCode::unsupported, kBidirectional, {"false for a model that predicts the next token"}, {"true"});
  model.is_causal = !is_bidirectional;
  for (LayerDistance& distance : model.distances)
    if (distance.window >= 0) {
      // On both sides.
      if (is_bidirectional) distance.window = (distance.window + 1) / 2;
      distance.unscaled = true;
      distance.rope_theta = local_theta;
    }
}

constexpr TensorNames names() {
  TensorNames all = kLlamaNames;
  all.post_norm1 = all.norm2;
  all.norm2 = "pre_feedforward_layernorm";
  all.post_norm2 = "post_feedforward_layernorm";
  return all;
}

constexpr Family family(std::span<const std::string_view> types, std::string_view architecture,
                        void (*configure)(const ConfigReader& config, ModelConfig& model)) {
  return {.model_types = types,
          .architecture = architecture,
          .prefix = "model.",
          .names = names(),
          .text_generation = {.classifier = "lm_head"},
          .ignored = kIgnored,
          .configure = configure,
          .buffers = kBuffers};
}

}  // namespace gemma

const Family kGemma2 = gemma::family(gemma::kTypes2, "Gemma2", &gemma::configure_2),
             kGemma3 = gemma::family(gemma::kTypes3, "Gemma3", &gemma::configure_3);

}  // namespace attn::detail
