#include "attn/models/families/bert.hpp"

// ELECTRA (Clark et al. 2020), transformers' ElectraModel: BERT, perhaps with narrower embedding tables. The head of discriminators is ignored.
namespace attn::detail {
namespace electra {

constexpr std::string_view kTypes[] = {"electra"};
constexpr std::string_view kIgnored[] = {"discriminator_predictions.", "generator_predictions.", "generator_lm_head."};

constexpr TensorNames names() {
  TensorNames all = kBertNames;
  all.embedding_projection = "embeddings_project";
  return all;
}

void configure(const ConfigReader& config, ModelConfig& model) {
  kBert.configure(config, model);
  model.word_size = config.whole("embedding_size", 1, 0x7fffffff, 128);
  model.embedding_projection = model.word_size != model.hidden_size;
  model.decoder_activation = Activation::gelu;
  model.classifier_activation = Activation::gelu;
  if (model.task == Task::multiple_choice) {
    config.only("summary_type", "first");
    config.only("summary_activation", "gelu");
  }
}

constexpr Family family() {
  Family all = bert_family(kTypes, "Electra", "electra.", kIgnored, &configure, names());
  all.text_classification = {.dense = "classifier.dense", .classifier = "classifier.out_proj"};
  all.multiple_choice = {.dense = "sequence_summary.summary", .classifier = "classifier"};
  all.fill_mask = {.dense = "generator_predictions.dense", .norm = "generator_predictions.LayerNorm", .classifier = "generator_lm_head"};
  all.tokenizer_class = "ElectraTokenizer";
  return all;
}

}  // namespace electra

const Family kElectra = electra::family();

}  // namespace attn::detail
