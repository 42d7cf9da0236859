#include <algorithm>

#include "attn/models/families/bert.hpp"

// NomicBERT (Nussbaum et al. 2024), transformers' NomicBertModel: RoPE, gate, post-norm, no biases. The first config.json has GPT-2's names, and
// checkpoints still have the first tensor names.
namespace attn::detail {
namespace nomic_bert {

constexpr std::string_view kTypes[] = {"nomic_bert"};
constexpr std::string_view kIgnored[] = {"cls.", "pooler.", "nomic_bert.pooler.", "bert.pooler."};

void configure_first(const ConfigReader& config, ModelConfig& model) {
  model.layer_norm_eps = 1e-5F;
  configure_sizes(config, model,
                  {.hidden_size = "n_embd",
                   .num_hidden_layers = "n_layer",
                   .num_attention_heads = "n_head",
                   .intermediate_size = "n_inner",
                   .hidden_act = nullptr,
                   .layer_norm_eps = "layer_norm_epsilon",
                   .positions = "n_positions",
                   .max_position_embeddings = 1024});
  model.intermediate_size = (model.intermediate_size + 255) / 256 * 256;
  const std::string_view activation = config.string("activation_function", "gelu");
  if (activation != "swiglu" && activation != "geglu")
    config.refuse(ErrorCode::unsupported, "activation_function", {"swiglu or geglu"}, {activation});
  model.hidden_act = activation == "swiglu" ? Activation::silu : Activation::gelu;
  for (const char* const name : {"prenorm", "parallel_block", "use_rms_norm", "causal", "rotary_emb_interleaved"}) config.only_false(name);
  for (const char* const name : {"rotary_emb_scale_base", "moe_every_n_layers"})
    if (config.number(name, 0) != 0) config.refuse(ErrorCode::unsupported, name, {"null or 0"}, {"given"});
  model.attention_bias = model.attention_output_bias = config.flag("qkv_proj_bias", true);
  model.mlp_bias = config.flag("mlp_fc1_bias", true);
  model.mlp_output_bias = config.flag("mlp_fc2_bias", true);
  model.classifier_dense_bias = model.decoder_bias = model.mlp_bias;

  const std::int64_t width = model.hidden_size / model.num_attention_heads;
  const float turning = static_cast<float>(width) * config.number("rotary_emb_fraction", 0);
  model.rotary_width = turning > 0 && turning <= static_cast<float>(width) ? static_cast<std::int64_t>(turning) : 0;
  if (model.rotary_width < 2 || model.rotary_width % 2 != 0 || static_cast<float>(model.rotary_width) != turning)
    config.refuse(ErrorCode::unsupported, "rotary_emb_fraction", {"an even number of a head's ", width, " columns"}, {turning, " of them"});
  configure_rotary(model, config.positive("rotary_emb_base", 10000));
  // Beyond it the base would grow with the longest text of a batch.
  if (config.number("rotary_scaling_factor", 0) != 0)
    model.max_length = std::min(model.max_length, config.whole("max_trained_positions", 1, 0x7fffffff, 2048));
  const float dropout = config.number("resid_pdrop", 0.1F);
  model.dropout = {.attention_weights = config.number("attn_pdrop", 0.1F),
                   .attention_output = dropout,
                   .feed_forward_output = dropout,
                   .embeddings = dropout,
                   .classifier = config.number("classifier_dropout", dropout)};
}

void configure(const ConfigReader& config, ModelConfig& model) {
  if (config.has("n_embd")) {
    configure_first(config, model);
  } else {
    configure_sizes(config, model, {.max_position_embeddings = 2048});
    if (!config.has("hidden_act")) model.hidden_act = Activation::silu;
    if (config.has("head_dim")) {
      const std::int64_t width = model.hidden_size / model.num_attention_heads;
      config.whole("head_dim", width, width);
    }
    model.attention_bias = model.attention_output_bias = model.mlp_bias = model.mlp_output_bias = false;
    configure_rope_parameters(config, model, 1000);
    configure_dropout(config, model, 0);
  }
  model.gated = true;
  model.type_vocab_size = config.whole("type_vocab_size", 0, 0x7fffffff, 2);
  model.decoder_activation = model.hidden_act;
}

constexpr TensorNames kNames{.word_embeddings = "embeddings.word_embeddings",
                             .token_type_embeddings = "embeddings.token_type_embeddings",
                             .embedding_norm = "emb_ln",
                             .layers = "encoder.layers.",
                             .query_key_value = "attn.Wqkv",
                             .attention_output = "attn.out_proj",
                             .norm1 = "norm1",
                             .linear1 = "mlp.fc11",
                             .gate = "mlp.fc12",
                             .linear2 = "mlp.fc2",
                             .norm2 = "norm2"};

constexpr Family family(std::string_view prefix, const TensorNames& names, const Family* alternative) {
  Family all = bert_family(kTypes, "NomicBert", prefix, kIgnored, &configure, names);
  all.fill_mask.norm = "cls.predictions.transform.layer_norm";
  all.alternative = alternative;
  return all;
}

// transformers' new names, and the prefix of the first code for models with a head.
constexpr Family kRenamed = family("nomic_bert.", kRotaryNames, nullptr), kFirst = family("bert.", kNames, &kRenamed);

}  // namespace nomic_bert

const Family kNomicBert = nomic_bert::family("nomic_bert.", nomic_bert::kNames, &nomic_bert::kFirst);

}  // namespace attn::detail
