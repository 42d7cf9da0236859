#include "attn/models/families/bert.hpp"

// MPNet (Song et al. 2020), transformers' MPNetModel: one bias by distance for all layers.
namespace attn::detail {
namespace mpnet {

constexpr std::string_view kTypes[] = {"mpnet"};
constexpr std::string_view kIgnored[] = {"lm_head.", "pooler.", "mpnet.pooler."};

void configure(const ConfigReader& config, ModelConfig& model) {
  configure_sizes(config, model);
  config.only("position_embedding_type", "absolute");
  model.positions = PositionRows::from_ids;
  model.padding_idx = model.pad_token_id = 1;  // transformers ignores config.json's
  model.max_length = model.max_position_embeddings - model.padding_idx - 1;
  // transformers always computes indices for 32 buckets.
  model.position_buckets = config.whole("relative_attention_num_buckets", 32, 32, 32);
  configure_dropout(config, model);
  model.dropout.pooled = model.dropout.classifier = model.dropout.embeddings;  // classifier_dropout is ignored
}

}  // namespace mpnet

const Family kMpnet{.model_types = mpnet::kTypes,
                    .architecture = "MPNet",
                    .prefix = "mpnet.",
                    .names = {.word_embeddings = "embeddings.word_embeddings",
                              .position_embeddings = "embeddings.position_embeddings",
                              .embedding_norm = "embeddings.LayerNorm",
                              .layers = "encoder.layer.",
                              .query = "attention.attn.q",
                              .key = "attention.attn.k",
                              .value = "attention.attn.v",
                              .attention_output = "attention.attn.o",
                              .norm1 = "attention.LayerNorm",
                              .linear1 = "intermediate.dense",
                              .linear2 = "output.dense",
                              .norm2 = "output.LayerNorm",
                              .position_bias = "encoder.relative_attention_bias"},
                    .text_classification = {.dense = "classifier.dense", .classifier = "classifier.out_proj"},
                    .token_classification = kTokenHead,
                    .question_answering = kAnswerHead,
                    .multiple_choice = kPooledHead,
                    .fill_mask = kRobertaMaskHead,
                    .ignored = mpnet::kIgnored,
                    .configure = &mpnet::configure,
                    .tokenizer_class = "MPNetTokenizer"};

}  // namespace attn::detail
