#include "attn/models/family.hpp"

// ELECTRA (Clark et al. 2020), transformers' ElectraModel: BERT whose tables may be narrower than the rest. Its generators fill masks, what its
// discriminators were trained for is left out.
namespace attn::detail {
namespace {

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
  model.decoder_activation = Activation::gelu;
  model.classifier_activation = Activation::gelu;
  if (model.task == Task::multiple_choice) {
    config.only("summary_type", "first");
    config.only("summary_activation", "gelu");
  }
}

}  // namespace

const Family kElectra{
    .model_types = kTypes,
    .architecture = "Electra",
    .prefix = "electra.",
    .names = names(),
    .text_classification = {.dense = "classifier.dense", .classifier = "classifier.out_proj"},
    .token_classification = kTokenHead,
    .question_answering = kAnswerHead,
    .multiple_choice = {.dense = "sequence_summary.summary", .classifier = "classifier"},
    .fill_mask = {.dense = "generator_predictions.dense", .norm = "generator_predictions.LayerNorm", .classifier = "generator_lm_head"},
    .ignored = kIgnored,
    .configure = &configure,
    .tokenizer_class = "ElectraTokenizer"};

}  // namespace attn::detail
