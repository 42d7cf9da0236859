#include "attn/models/family.hpp"

// BERT (Devlin et al. 2018), transformers' BertModel: also MiniLM, E5, BGE and GTE.
namespace attn::detail {
namespace {

constexpr std::string_view kTypes[] = {"bert"};
constexpr std::string_view kIgnored[] = {"cls.", "pooler.", "bert.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model);
  config.only("position_embedding_type", "absolute");
  model.type_vocab_size = config.whole("type_vocab_size", 1, 0x7fffffff, 2);
  model.decoder_activation = model.hidden_act;
  if constexpr (kHasGradients) configure_dropout(config, model);
}

}  // namespace

const Family kBert{.model_types = kTypes,
                   .architecture = "Bert",
                   .prefix = "bert.",
                   .names = kBertNames,
                   .text_classification = {.pooler = "pooler.dense", .classifier = "classifier"},
                   .token_classification = {.classifier = "classifier"},
                   .question_answering = {.classifier = "qa_outputs"},
                   .multiple_choice = {.pooler = "pooler.dense", .classifier = "classifier"},
                   .fill_mask = {.dense = "cls.predictions.transform.dense",
                                 .norm = "cls.predictions.transform.LayerNorm",
                                 .classifier = "cls.predictions.decoder",
                                 .classifier_bias = "cls.predictions.bias"},
                   .ignored = kIgnored,
                   .configure = &configure,
                   .tokenizer_class = "BertTokenizer"};

}  // namespace attn::detail
