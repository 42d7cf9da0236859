#include "attn/models/families/llama.hpp"

// Llama (Touvron et al. 2023), transformers' LlamaModel, and decoders that differ from it in biases, windows or norms: Mistral, Qwen2, Qwen3.
namespace attn::detail {

void configure_llama(const ConfigReader& config, ModelConfig& model, std::int64_t positions, double theta) {
  model.layer_norm_eps = 1e-6F;
  configure_sizes(config, model, {.layer_norm_eps = "rms_norm_eps", .max_position_embeddings = positions, .pad_token_id = -1});
  if (!config.has("hidden_act")) model.hidden_act = Activation::silu;
  model.is_causal = model.norm_first = model.gated = true;
  model.norm = NormKind::rms_norm;
  model.norm_bias = model.attention_bias = model.attention_output_bias = model.mlp_bias = model.mlp_output_bias = model.decoder_bias = false;
  model.num_key_value_heads = config.whole("num_key_value_heads", 1, model.num_attention_heads, model.num_attention_heads);
  if (model.num_attention_heads % model.num_key_value_heads != 0)
    config.refuse(ErrorCode::config, "num_key_value_heads", {"a divisor of the number of heads, ", model.num_attention_heads},
                  {model.num_key_value_heads});
  model.head_dim = config.whole("head_dim", 1, 1 << 16, 0);
  if (theta > 0) configure_rope_parameters(config, model, theta);
  model.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  model.dropout = {.attention_weights = config.number("attention_dropout", 0)};
}

namespace llama {

constexpr std::string_view kIgnored[] = {"lm_head."};
constexpr std::string_view kBuffers[] = {".rotary_emb.inv_freq"};  // of older files
constexpr std::string_view kLlamaTypes[] = {"llama"}, kMistralTypes[] = {"mistral"}, kQwen2Types[] = {"qwen2"}, kQwen3Types[] = {"qwen3"};

constexpr Family family(std::span<const std::string_view> types, std::string_view architecture,
                        void (*configure)(const ConfigReader& config, ModelConfig& model)) {
  return {.model_types = types,
          .architecture = architecture,
          .prefix = "model.",
          .names = kLlamaNames,
          .text_generation = {.classifier = "lm_head"},
          .ignored = kIgnored,
          .configure = configure,
          .buffers = kBuffers};
}

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_llama(config, model, 2048);
  model.attention_bias = model.attention_output_bias = config.flag("attention_bias", false);
  model.mlp_bias = model.mlp_output_bias = config.flag("mlp_bias", false);
}

void configure_mistral(const ConfigReader& config, ModelConfig& model) {
  configure_llama(config, model, 4096 * 32);
  const bool has_window = !config.is_null("sliding_window");
  configure_windows(config, model, has_window, has_window ? 0 : model.num_hidden_layers);
}

void configure_qwen(const ConfigReader& config, ModelConfig& model) {
  configure_llama(config, model, 32768);
  const bool has_window = config.flag("use_sliding_window", false) && !config.is_null("sliding_window");
  configure_windows(config, model, has_window, has_window ? config.whole("max_window_layers", 0, 0x7fffffff, 28) : model.num_hidden_layers);
}

void configure_qwen2(const ConfigReader& config, ModelConfig& model) {
  configure_qwen(config, model);
  model.attention_bias = true;
}

void configure_qwen3(const ConfigReader& config, ModelConfig& model) {
  configure_qwen(config, model);
  model.attention_bias = model.attention_output_bias = config.flag("attention_bias", false);
  if (model.head_dim == 0) model.head_dim = 128;
  model.layer.head_norms = true;
}

}  // namespace llama

const Family kLlama = llama::family(llama::kLlamaTypes, "Llama", &llama::configure),
             kMistral = llama::family(llama::kMistralTypes, "Mistral", &llama::configure_mistral),
             kQwen2 = llama::family(llama::kQwen2Types, "Qwen2", &llama::configure_qwen2),
             kQwen3 = llama::family(llama::kQwen3Types, "Qwen3", &llama::configure_qwen3);

}  // namespace attn::detail
