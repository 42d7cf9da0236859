#include "attn/models/families/bert.hpp"

// Jina embeddings v2 (Günther et al. 2023), jinaai's JinaBertModel: BERT with bidirectional ALiBi (Press et al. 2022) and a gated feed-forward.
namespace attn::detail {
namespace jina_bert {

constexpr std::string_view kTypes[] = {"bert"};
constexpr std::string_view kIgnored[] = {"cls.", "pooler.", "bert.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model);
  if (config.object("auto_map").string("AutoModel", "").find("qk-post-norm") != std::string_view::npos)
    config.refuse(ErrorCode::unsupported, "auto_map.AutoModel", {"jina-bert-implementation"},
                  {"jina-bert-v2-qk-post-norm, which has norms of queries and keys"});
  model.type_vocab_size = config.whole("type_vocab_size", 1, 0x7fffffff, 2);
  model.decoder_activation = model.hidden_act;
  const std::string_view gate = config.string("feed_forward_type", "original");
  if (gate != "geglu" && gate != "reglu") config.refuse(ErrorCode::unsupported, "feed_forward_type", {"geglu or reglu"}, {gate});
  model.hidden_act = gate == "geglu" ? Activation::gelu : Activation::relu;
  model.positions = PositionRows::none;
  model.gated = model.alibi = true;
  model.mlp_bias = false;
  configure_dropout(config, model);
  std::swap(model.dropout.hidden, model.dropout.feed_forward_output);
}

constexpr TensorNames names() {
  TensorNames all = kBertNames;
  all.gate_linear1 = "mlp.gated_layers";
  all.linear2 = "mlp.wo";
  all.norm2 = "mlp.layernorm";
  return all;
}

}  // namespace jina_bert

const Family kJinaBert = bert_family(jina_bert::kTypes, "JinaBert", "bert.", jina_bert::kIgnored, &jina_bert::configure, jina_bert::names());

}  // namespace attn::detail
