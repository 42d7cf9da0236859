#include "attn/models/family.hpp"

// GPT-NeoX (Black et al. 2022), transformers' GPTNeoXModel, and Pythia: parallel attention and feed-forward, partial RoPE.
namespace attn::detail {
namespace gpt_neox {

constexpr std::string_view kTypes[] = {"gpt_neox"};
constexpr std::string_view kIgnored[] = {"embed_out.", "lm_head."};
constexpr std::string_view kBuffers[] = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"};  // of older files

void configure(const ConfigReader& config, ModelConfig& model) {
  model.layer_norm_eps = 1e-5F;
  configure_sizes(config, model, {.max_position_embeddings = 2048, .pad_token_id = -1});
  model.is_causal = model.norm_first = true;
  model.layer.parallel = config.flag("use_parallel_residual", true);
  model.attention_bias = model.attention_output_bias = config.flag("attention_bias", true);
  model.decoder_bias = false;
  model.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  if (const std::int64_t width = model.hidden_size / model.num_attention_heads; config.whole("head_dim", 1, 1 << 16, width) != width)
    config.refuse(ErrorCode::unsupported, "head_dim", {"the hidden size divided by the number of heads, ", width},
                  {config.whole("head_dim", 1, 1 << 16)});
  if (model.hidden_size % model.num_attention_heads == 0)  // otherwise refused later
    configure_rope_parameters(config, model, config.positive("rotary_emb_base", 10000), config.positive("rotary_pct", 0.25));
  const float hidden = config.number("hidden_dropout", 0);
  model.dropout = {
      .attention_weights = config.number("attention_dropout", 0), .attention_output = hidden, .feed_forward_output = hidden, .embeddings = hidden};
}

}  // namespace gpt_neox

const Family kGptNeoX{.model_types = gpt_neox::kTypes,
                      .architecture = "GPTNeoX",
                      .prefix = "gpt_neox.",
                      .names = {.word_embeddings = "embed_in",
                                .layers = "layers.",
                                .query_key_value = "attention.query_key_value",
                                .attention_output = "attention.dense",
                                .norm1 = "input_layernorm",
                                .linear1 = "mlp.dense_h_to_4h",
                                .linear2 = "mlp.dense_4h_to_h",
                                .norm2 = "post_attention_layernorm",
                                .final_norm = "final_layer_norm"},
                      .text_generation = {.classifier = "embed_out"},
                      .ignored = gpt_neox::kIgnored,
                      .configure = &gpt_neox::configure,
                      .by_heads = true,
                      .buffers = gpt_neox::kBuffers};

}  // namespace attn::detail
