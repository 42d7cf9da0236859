#include "attn/models/families/bert.hpp"

// GTE (Zhang et al. 2024), transformers' GteModel and the original NewModel: RoPE, gate, post-norm.
namespace attn::detail {
namespace gte {

constexpr std::string_view kTypes[] = {"gte"}, kNewTypes[] = {"new"};
constexpr std::string_view kIgnored[] = {"classifier.", "lm_head.", "pooler.", "gte.pooler.", "new.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  const bool is_new = model.family == &kNew;
  configure_sizes(config, model, {.max_position_embeddings = is_new ? 2048 : 8192, .pad_token_id = is_new ? 0 : 1});
  config.only("position_embedding_type", "rope");
  config.only("layer_norm_type", "layer_norm");
  config.only_false("logn_attention_scale");
  if (!config.flag("pack_qkv", true)) config.refuse(ErrorCode::unsupported, "pack_qkv", {"true"}, {"false"});
  model.type_vocab_size = config.whole("type_vocab_size", 0, 0x7fffffff, 1);
  if (is_new) model.decoder_activation = model.hidden_act;
  model.gated = true;
  model.mlp_bias = false;
  configure_rope_parameters(config, model, is_new ? 10'000 : 160'000);
  configure_dropout(config, model);
  model.dropout.attention_weights = config.number("attention_probs_dropout_prob", 0);
  model.dropout.hidden = model.dropout.feed_forward_output;
}

constexpr TensorNames kNames{.word_embeddings = "embeddings.word_embeddings",
                             .token_type_embeddings = "embeddings.token_type_embeddings",
                             .embedding_norm = "embeddings.LayerNorm",
                             .layers = "encoder.layer.",
                             .query_key_value = "attention.qkv_proj",
                             .attention_output = "attention.o_proj",
                             .norm1 = "attn_ln",
                             .linear1_gate = "mlp.up_gate_proj",
                             .linear2 = "mlp.down_proj",
                             .norm2 = "mlp_ln"};

constexpr Family family(std::span<const std::string_view> types, std::string_view architecture, std::string_view prefix, const TensorNames& names,
                        std::string_view norm, const Family* alternative) {
  Family all = bert_family(types, architecture, prefix, kIgnored, &configure, names);
  all.fill_mask = {.dense = "lm_head.dense", .norm = norm, .classifier = "lm_head.decoder"};
  all.tokenizer_class = {};
  all.alternative = alternative;
  return all;
}

// transformers' new names, and the prefix of NewModel.
constexpr Family kRenamed = family(kTypes, "Gte", "gte.", kRotaryNames, "lm_head.layer_norm", nullptr),
                 kFirst = family(kTypes, "Gte", "new.", kNames, "lm_head.norm", &kRenamed);

}  // namespace gte

const Family kGte = gte::family(gte::kTypes, "Gte", "gte.", gte::kNames, "lm_head.norm", &gte::kFirst);
const Family kNew = gte::family(gte::kNewTypes, "New", "new.", gte::kNames, "lm_head.norm", nullptr);

}  // namespace attn::detail
