#include "attn/models/family.hpp"

// RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2020), transformers' RobertaModel and XLMRobertaModel.
namespace attn::detail {
namespace {

constexpr std::string_view kTypes[] = {"roberta", "xlm-roberta"};
constexpr std::string_view kIgnored[] = {"lm_head.", "pooler.", "roberta.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model);
  config.only("position_embedding_type", "absolute");
  model.type_vocab_size = config.whole("type_vocab_size", 1, 0x7fffffff, 2);
  model.positions = PositionRows::from_ids;
  model.padding_idx = config.whole("pad_token_id", 0, model.max_position_embeddings - 2, 1);
  model.pad_token_id = model.padding_idx < model.vocab_size ? model.padding_idx : -1;
  model.max_length = model.max_position_embeddings - model.padding_idx - 1;
  if constexpr (kHasGradients) {
    configure_dropout(config, model);
    model.dropout.pooled = model.dropout.classifier;
  }
}

}  // namespace

const Family kRoberta{
    .model_types = kTypes,
    .architecture = "Roberta",
    .prefix = "roberta.",
    .names = kBertNames,
    .text_classification = {.dense = "classifier.dense", .classifier = "classifier.out_proj"},
    .token_classification = {.classifier = "classifier"},
    .question_answering = {.classifier = "qa_outputs"},
    .multiple_choice = {.pooler = "pooler.dense", .classifier = "classifier"},
    .fill_mask = {.dense = "lm_head.dense", .norm = "lm_head.layer_norm", .classifier = "lm_head.decoder", .classifier_bias = "lm_head.bias"},
    .ignored = kIgnored,
    .configure = &configure};

}  // namespace attn::detail
