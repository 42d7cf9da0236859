#include "attn/models/family.hpp"

// GPT-2 (Radford et al. 2019), transformers' GPT2Model: learned positions, pre-norm, weights stored transposed (Conv1D).
namespace attn::detail {
namespace gpt2 {

constexpr std::string_view kTypes[] = {"gpt2"};
constexpr std::string_view kIgnored[] = {"lm_head."};
constexpr std::string_view kBuffers[] = {".attn.bias", ".attn.masked_bias"};  // causal masks in older files

void configure(const ConfigReader& config, ModelConfig& model) {
  model.layer_norm_eps = 1e-5F;
  configure_sizes(config, model,
                  {.hidden_size = "n_embd",
                   .num_hidden_layers = "n_layer",
                   .num_attention_heads = "n_head",
                   .intermediate_size = nullptr,
                   .hidden_act = nullptr,
                   .layer_norm_eps = "layer_norm_epsilon",
                   .positions = "n_positions",
                   .max_position_embeddings = 1024,
                   .pad_token_id = -1});
  model.intermediate_size = config.whole("n_inner", 1, 0x7fffffff, 4 * model.hidden_size);
  model.hidden_act = config.activation("activation_function", Activation::gelu_tanh);
  if (!config.flag("scale_attn_weights", true)) config.refuse(ErrorCode::unsupported, "scale_attn_weights", {"true"}, {"false"});
  config.only_false("scale_attn_by_inverse_layer_idx");
  model.is_causal = model.norm_first = true;
  model.decoder_bias = false;
  model.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  const float residual = config.number("resid_pdrop", 0.1F);
  model.dropout = {.attention_weights = config.number("attn_pdrop", 0.1F),
                   .attention_output = residual,
                   .feed_forward_output = residual,
                   .embeddings = config.number("embd_pdrop", 0.1F)};
}

}  // namespace gpt2

const Family kGpt2{.model_types = gpt2::kTypes,
                   .architecture = "GPT2",
                   .prefix = "transformer.",
                   .names = {.word_embeddings = "wte",
                             .position_embeddings = "wpe",
                             .layers = "h.",
                             .query_key_value = "attn.c_attn",
                             .attention_output = "attn.c_proj",
                             .norm1 = "ln_1",
                             .linear1 = "mlp.c_fc",
                             .linear2 = "mlp.c_proj",
                             .norm2 = "ln_2",
                             .final_norm = "ln_f"},
                   .text_generation = {.classifier = "lm_head"},
                   .ignored = gpt2::kIgnored,
                   .configure = &gpt2::configure,
                   .transposed = true,
                   .buffers = gpt2::kBuffers};

}  // namespace attn::detail
