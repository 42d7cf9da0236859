#include "attn/models/families/bert.hpp"

// ALBERT (Lan et al. 2020), transformers' AlbertModel: BERT with shared layers and narrower embedding tables.
namespace attn::detail {
namespace albert {

constexpr std::string_view kTypes[] = {"albert"};
constexpr std::string_view kIgnored[] = {"predictions.", "sop_classifier.", "pooler.", "albert.pooler."};
constexpr HeadNames kHead{.pooler = "pooler", .classifier = "classifier"};

constexpr Family family(void (*configure)(const ConfigReader& config, ModelConfig& model)) {
  TensorNames names = kBertNames;
  names.embedding_projection = "encoder.embedding_hidden_mapping_in";
  names.layers = "encoder.albert_layer_groups.";
  names.inner_layers = ".albert_layers.";
  names.query = "attention.query";
  names.key = "attention.key";
  names.value = "attention.value";
  names.attention_output = "attention.dense";
  names.norm1 = "attention.LayerNorm";
  names.linear1 = "ffn";
  names.linear2 = "ffn_output";
  names.norm2 = "full_layer_layer_norm";
  Family all = bert_family(kTypes, "Albert", "albert.", kIgnored, configure, names);
  all.text_classification = all.multiple_choice = kHead;
  all.fill_mask = {
      .dense = "predictions.dense", .norm = "predictions.LayerNorm", .classifier = "predictions.decoder", .classifier_bias = "predictions.bias"};
  all.tokenizer_class = {};
  return all;
}

void configure(const ConfigReader& config, ModelConfig& model) {
  kBert.configure(config, model);
  model.word_size = config.whole("embedding_size", 1, 0x7fffffff, 128);
  model.embedding_projection = true;  // even if both widths are equal
  const std::int64_t times = model.num_hidden_layers;
  model.hidden_groups = config.whole("num_hidden_groups", 1, times, 1);
  model.inner_layers = config.whole("inner_group_num", 1, kMaxLayers / times, 1);
  model.num_hidden_layers = times * model.inner_layers;
  configure_dropout(config, model, 0);
  model.dropout.classifier = config.number("classifier_dropout_prob", 0.1F);
}

}  // namespace albert

const Family kAlbert = albert::family(&albert::configure);

}  // namespace attn::detail
