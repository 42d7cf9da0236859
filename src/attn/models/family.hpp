#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "attn/layers/gradients.hpp"
#include "attn/models/model_config.hpp"

namespace attn::detail {

/// Tensor names without .weight and .bias; empty: no such tensor.
struct TensorNames {
  std::string_view word_embeddings = {}, position_embeddings = {}, token_type_embeddings = {}, task_type_embeddings = {}, embedding_norm = {};
  std::string_view embedding_projection = {};
  std::string_view layers = {};        ///< before a layer's index
  std::string_view inner_layers = {};  ///< between the index of a group and that of a layer in it
  // Within a layer.
  std::string_view query = {}, key = {}, value = {};
  std::string_view query_key_value = {};  ///< replaces the three: their rows, stacked
  std::string_view query_norm = {}, key_norm = {};
  std::string_view attention_output = {}, norm1 = {};
  std::string_view linear1 = {};
  std::string_view gate_linear1 = {};  ///< instead of linear1: rows of the gate, which gets the activation, then of linear1
  std::string_view linear1_gate = {};  ///< rows of linear1, then of the gate
  std::string_view gate = {};          ///< as a separate tensor
  std::string_view linear2 = {}, norm2 = {};
  std::string_view post_norm1 = {}, post_norm2 = {};  ///< or LayerScale, then with the whole name
  std::string_view final_norm = {};
  std::string_view position_bias = {};
  std::string_view relative_embeddings = {}, relative_norm = {};
  std::string_view position_key = {}, position_query = {};  ///< within a layer
};

/// As TensorNames. Only the pooler gets the family's prefix, because it belongs to the base model.
struct HeadNames {
  std::string_view pooler = {}, dense = {}, norm = {}, classifier = {};
  std::string_view classifier_bias = {};
};

struct Family {
  std::span<const std::string_view> model_types;
  std::string_view architecture;  ///< Bert in BertForSequenceClassification
  std::string_view prefix;        ///< of the base model's tensors in checkpoints with a head
  TensorNames names;
  HeadNames text_classification = {}, token_classification = {}, question_answering = {}, multiple_choice = {}, fill_mask = {}, text_generation = {};
  HeadNames image_classification = {};
  std::span<const std::string_view> ignored;  ///< prefixes of unused tensors, such as other heads
  void (*configure)(const ConfigReader& config, ModelConfig& model);
  /// Applies if tokenizer_config.json names no class; empty: default settings.
  std::string_view tokenizer_class = {};
  /// Other tensor names that a file may have.
  const Family* alternative = nullptr;
  bool transposed = false;                         ///< linear weights of layers are (in,out), as GPT-2's Conv1D
  bool by_heads = false;                           ///< query_key_value has q, k and v of one head after the other
  std::span<const std::string_view> buffers = {};  ///< suffixes of tensors that are no weights
};

enum class HeadPart : std::uint8_t { pooler, linear, norm, classifier };

/// Calls add(part, name in the checkpoint, our name, has a bias) in the order of computation.
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
/// Families of image models.
extern const Family kVit, kDeit, kDinov2, kDinov2WithRegisters;

/// Names in config.json; null: no such member.
struct SizeNames {
  const char *vocab_size = "vocab_size", *hidden_size = "hidden_size", *num_hidden_layers = "num_hidden_layers",
             *num_attention_heads = "num_attention_heads";
  const char *intermediate_size = "intermediate_size", *hidden_act = "hidden_act", *layer_norm_eps = "layer_norm_eps";
  const char* positions = "max_position_embeddings";
  // transformers' defaults.
  std::int64_t max_position_embeddings = 512, pad_token_id = 0;
};

/// layer_norm_eps keeps its value if it is missing.
void configure_sizes(const ConfigReader& config, ModelConfig& model, const SizeNames& names = {});

void configure_rotary(ModelConfig& model, double theta);
/// Reads rope_parameters, or rope_theta and rope_scaling of older files. `share` is the default of partial_rotary_factor; 0: the family has none.
void configure_rope_parameters(const ConfigReader& config, ModelConfig& model, double theta, double share = 0);
/// Reads RoPE by kind of layer, as in Gemma 3. Returns the base of layers with a window.
double configure_rope_by_layer_type(const ConfigReader& config, ModelConfig& model, double theta, double local_theta);

/// Sets windows in the layers that layer_types names; without it in those from `first` whose number, from 1, is no multiple of `period` (0: none).
/// UNSUPPORTED if such a layer has no window, as in transformers.
void configure_windows(const ConfigReader& config, ModelConfig& model, bool has_window, std::int64_t first, std::int64_t period = 0);

void configure_dropout(const ConfigReader& config, ModelConfig& model, float otherwise = 0.1F);

}  // namespace attn::detail
