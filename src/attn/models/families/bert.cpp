#include "attn/models/families/bert.hpp"

// BERT (Devlin et al. 2018), transformers' BertModel; also the architecture of MiniLM, E5, BGE and GTE models.
namespace attn::detail {
namespace bert {

constexpr std::string_view kTypes[] = {"bert"};
constexpr std::string_view kIgnored[] = {"cls.", "pooler.", "bert.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model);
  config.only("position_embedding_type", "absolute");
  model.type_vocab_size = config.whole("type_vocab_size", 1, 0x7fffffff, 2);
  model.decoder_activation = model.hidden_act;
  configure_dropout(config, model);
}

}  // namespace bert

const Family kBert = bert_family(bert::kTypes, "Bert", "bert.", bert::kIgnored, &bert::configure);

}  // namespace attn::detail
