#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "attn/layers/gradients.hpp"
#include "attn/models/model_config.hpp"

namespace attn::detail {

/// Names of a checkpoint's tensors without .weight and .bias; empty if the family has no such tensor.
struct TensorNames {
  std::string_view word_embeddings = {}, position_embeddings = {}, token_type_embeddings = {}, task_type_embeddings = {}, embedding_norm = {};
  std::string_view embedding_projection = {};  ///< from the width of the tables to the hidden size
  std::string_view layers = {};                ///< prefix before the index of a layer
  std::string_view inner_layers = {};          ///< for groups of layers: text between the index of a group and the index of a layer in it
  // Within a layer.
  std::string_view query = {}, key = {}, value = {};
  std::string_view query_key_value = {};            ///< replaces the three: their rows, stacked
  std::string_view query_norm = {}, key_norm = {};  ///< of each head
  std::string_view attention_output = {}, norm1 = {};
  std::string_view linear1 = {};
  std::string_view gate_linear1 = {};  ///< replaces linear1: rows of the gate, which gets the activation, then rows of linear1
  std::string_view linear1_gate = {};  ///< replaces both: rows of linear1, then rows of the gate
  std::string_view gate = {};          ///< the gate as a separate tensor
  std::string_view linear2 = {}, norm2 = {};
  std::string_view post_norm1 = {}, post_norm2 = {};  ///< of the results of attention and feed-forward
  std::string_view final_norm = {};
  std::string_view position_bias = {};
  std::string_view relative_embeddings = {}, relative_norm = {};  ///< for disentangled attention
  std::string_view position_key = {}, position_query = {};        ///< also within a layer
};

/// Names of a head's tensors without .weight and .bias; empty if the head has no such tensor. Only the pooler's name gets the family's prefix,
/// because it belongs to the base model.
struct HeadNames {
  std::string_view pooler = {}, dense = {}, norm = {}, classifier = {};
  std::string_view classifier_bias = {};  ///< if it differs from the name of the classifier
};

/// An architecture of transformers and how its checkpoints are read.
struct Family {
  std::span<const std::string_view> model_types;  ///< of config.json
  std::string_view architecture;                  ///< as in BertForSequenceClassification
  std::string_view prefix;                        ///< of the base model's tensors in checkpoints with a head
  TensorNames names;
  HeadNames text_classification = {}, token_classification = {}, question_answering = {}, multiple_choice = {}, fill_mask = {}, text_generation = {};
  std::span<const std::string_view> ignored;  ///< prefixes of tensors that may be present but are not used, such as other heads
  void (*configure)(const ConfigReader& config, ModelConfig& model);
  /// Tokenizer class in transformers if tokenizer_config.json names none; empty if that class has no settings that differ.
  std::string_view tokenizer_class = {};
  /// The same family with other tensor names, tried if a file has those.
  const Family* alternative = nullptr;
  bool transposed = false;                         ///< weights of the layers' linear maps are (in,out), as in GPT-2's Conv1D
  bool by_heads = false;                           ///< query_key_value has one head's rows of all three after the other's
  std::span<const std::string_view> buffers = {};  ///< ends of the names of tensors that are no weights
};

/// The pooler belongs to the base model. A tied classifier is the word embedding matrix, and its bias may have another name.
enum class HeadPart : std::uint8_t { pooler, linear, norm, classifier };

/// Calls add(kind, name in the checkpoint, our name, has a bias) for each part of the head in the order of computation.
template <class Add>
void for_each_part_of_head(const ModelConfig& config, Add add) {
  const HeadNames& names = config.head_names();
  if (!names.pooler.empty()) add(HeadPart::pooler, names.pooler, "classifier_dense", true);
  if (!names.dense.empty()) add(HeadPart::linear, names.dense, "classifier_dense", config.classifier_dense_bias);
  if (!names.norm.empty()) add(HeadPart::norm, names.norm, "classifier_norm", config.norm_bias);
  add(HeadPart::classifier, names.classifier, "classifier", !config.predicts_tokens() || config.decoder_bias);
}

extern const Family kBert, kDistilBert, kRoberta, kCamembert, kData2VecText, kMpnet, kModernBert, kErnie, kElectra, kDeberta, kAlbert, kNomicBert,
    kJinaBert, kGte, kNew, kGpt2, kLlama, kMistral, kQwen2, kQwen3, kGptNeoX, kGemma2, kGemma3;

/// Names of sizes in config.json that differ between families; null: the family has no such member.
struct SizeNames {
  const char *hidden_size = "hidden_size", *num_hidden_layers = "num_hidden_layers", *num_attention_heads = "num_attention_heads";
  const char *intermediate_size = "intermediate_size", *hidden_act = "hidden_act", *layer_norm_eps = "layer_norm_eps";
  const char* positions = "max_position_embeddings";
  // Defaults in transformers.
  std::int64_t max_position_embeddings = 512, pad_token_id = 0;
};

/// Reads these sizes, the vocabulary and the positions. layer_norm_eps keeps its value if it is missing.
void configure_sizes(const ConfigReader& config, ModelConfig& model, const SizeNames& names = {});

/// Sets rotary positions with base `theta` for all layers, without a position table.
void configure_rotary(ModelConfig& model, double theta);
/// Reads rotary positions as transformers writes them: rope_parameters, or rope_theta and rope_scaling in older files. `share` is the default of
/// partial_rotary_factor, the proportion of a head's columns that are rotated; 0: the family has no such setting. Throws UNSUPPORTED for parameters
/// by kind of layer.
void configure_rope_parameters(const ConfigReader& config, ModelConfig& model, double theta, double share = 0);
/// Reads rotary positions that differ by kind of layer, as in Gemma 3. `theta` and `local_theta` are the defaults of layers without and with a
/// window. Returns the base of layers with a window.
double configure_rope_by_layer_type(const ConfigReader& config, ModelConfig& model, double theta, double local_theta);

/// Limits attention to sliding_window keys in the layers that layer_types names, or without it in those from `first` whose number, counted from 1,
/// is no multiple of `period`; 0: no period. Without a window such a layer is an UNSUPPORTED error, as transformers refuses it.
void configure_windows(const ConfigReader& config, ModelConfig& model, bool has_window, std::int64_t first, std::int64_t period = 0);

/// Reads BERT's dropout probabilities with the default `otherwise`. The head applies classifier_dropout before its last layer.
void configure_dropout(const ConfigReader& config, ModelConfig& model, float otherwise = 0.1F);

}  // namespace attn::detail
