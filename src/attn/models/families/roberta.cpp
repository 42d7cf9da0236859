#include "attn/models/families/bert.hpp"

// RoBERTa (Liu et al. 2019) and models with the same structure: XLM-RoBERTa (Conneau et al. 2020), CamemBERT (Martin et al. 2020) and data2vec-text
// (Baevski et al. 2022); transformers' RobertaModel, XLMRobertaModel, CamembertModel and Data2VecTextModel.
namespace attn::detail {
namespace roberta {

constexpr std::string_view kTypes[] = {"roberta", "xlm-roberta"}, kCamembertTypes[] = {"camembert"}, kData2VecTypes[] = {"data2vec-text"};
constexpr std::string_view kIgnored[] = {"lm_head.", "pooler.", "roberta.pooler."},
                           kData2VecIgnored[] = {"lm_head.", "pooler.", "data2vec_text.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model);
  config.only("position_embedding_type", "absolute");
  model.type_vocab_size = config.whole("type_vocab_size", 1, 0x7fffffff, 2);
  model.positions = PositionRows::from_ids;
  model.padding_idx = config.whole("pad_token_id", 0, model.max_position_embeddings - 2, 1);
  model.pad_token_id = model.padding_idx < model.vocab_size ? model.padding_idx : -1;
  model.max_length = model.max_position_embeddings - model.padding_idx - 1;
  configure_dropout(config, model);
  model.dropout.pooled = model.dropout.classifier;
}

constexpr Family family(std::span<const std::string_view> types, std::string_view architecture, std::string_view prefix,
                        std::span<const std::string_view> ignored) {
  return {.model_types = types,
          .architecture = architecture,
          .prefix = prefix,
          .names = kBertNames,
          .text_classification = {.dense = "classifier.dense", .classifier = "classifier.out_proj"},
          .token_classification = kTokenHead,
          .question_answering = kAnswerHead,
          .multiple_choice = kPooledHead,
          .fill_mask = kRobertaMaskHead,
          .ignored = ignored,
          .configure = &configure};
}

}  // namespace roberta

const Family kRoberta = roberta::family(roberta::kTypes, "Roberta", "roberta.", roberta::kIgnored);
const Family kCamembert = roberta::family(roberta::kCamembertTypes, "Camembert", "roberta.", roberta::kIgnored);
const Family kData2VecText = roberta::family(roberta::kData2VecTypes, "Data2VecText", "data2vec_text.", roberta::kData2VecIgnored);

}  // namespace attn::detail
