#include "attn/models/family.hpp"

// DistilBERT (Sanh et al. 2019), transformers' DistilBertModel.
namespace attn::detail {
namespace distilbert {

constexpr std::string_view kTypes[] = {"distilbert"};
constexpr std::string_view kIgnored[] = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model,
                  {.hidden_size = "dim",
                   .num_hidden_layers = "n_layers",
                   .num_attention_heads = "n_heads",
                   .intermediate_size = "hidden_dim",
                   .hidden_act = "activation",
                   .layer_norm_eps = nullptr});
  model.classifier_activation = Activation::relu;
  model.decoder_activation = model.hidden_act;
  const float dropout = config.number("dropout", 0.1F);  // not applied to the attention output
  model.dropout = {.attention_weights = config.number("attention_dropout", 0.1F),
                   .feed_forward_output = dropout,
                   .embeddings = dropout,
                   .classifier = config.number("seq_classif_dropout", 0.2F)};
}

}  // namespace distilbert

const Family kDistilBert{.model_types = distilbert::kTypes,
                         .architecture = "DistilBert",
                         .prefix = "distilbert.",
                         .names = {.word_embeddings = "embeddings.word_embeddings",
                                   .position_embeddings = "embeddings.position_embeddings",
                                   .embedding_norm = "embeddings.LayerNorm",
                                   .layers = "transformer.layer.",
                                   .query = "attention.q_lin",
                                   .key = "attention.k_lin",
                                   .value = "attention.v_lin",
                                   .attention_output = "attention.out_lin",
                                   .norm1 = "sa_layer_norm",
                                   .linear1 = "ffn.lin1",
                                   .linear2 = "ffn.lin2",
                                   .norm2 = "output_layer_norm"},
                         .text_classification = {.dense = "pre_classifier", .classifier = "classifier"},
                         .token_classification = {.classifier = "classifier"},
                         .question_answering = {.classifier = "qa_outputs"},
                         .multiple_choice = {.dense = "pre_classifier", .classifier = "classifier"},
                         .fill_mask = {.dense = "vocab_transform", .norm = "vocab_layer_norm", .classifier = "vocab_projector"},
                         .ignored = distilbert::kIgnored,
                         .configure = &distilbert::configure,
                         .tokenizer_class = "DistilBertTokenizer"};

}  // namespace attn::detail
