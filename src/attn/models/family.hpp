#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "attn/layers/gradients.hpp"
#include "attn/models/model_config.hpp"

namespace attn::detail {

/// Names of a checkpoint's tensors, without .weight and .bias; empty where a family has none.
struct TensorNames {
  std::string_view word_embeddings = {}, position_embeddings = {}, token_type_embeddings = {}, task_type_embeddings = {}, embedding_norm = {};
  std::string_view embedding_projection = {};  ///< from their width to the hidden size
  std::string_view layers = {};                ///< what comes before a layer's number
  std::string_view inner_layers = {};          ///< of groups of layers: what comes between a group's number and a layer's in it
  // Within a layer.
  std::string_view query = {}, key = {}, value = {};
  std::string_view query_key_value = {};  ///< instead of the three: one below the other
  std::string_view attention_output = {}, norm1 = {};
  std::string_view linear1 = {};
  std::string_view gate_linear1 = {};  ///< instead of linear1: what is activated, and below it what that is multiplied by
  std::string_view linear1_gate = {};  ///< instead of both: the other way around
  std::string_view gate = {};          ///< what is activated, by itself
  std::string_view linear2 = {}, norm2 = {};
  std::string_view final_norm = {};
  std::string_view position_bias = {};
  std::string_view relative_embeddings = {}, relative_norm = {};  ///< of disentangled attention
  std::string_view position_key = {}, position_query = {};        ///< within a layer, too
};

/// Names of a head's tensors, without .weight and .bias, and without the prefix but for the pooler, which belongs to the base model; empty where it
/// has none.
struct HeadNames {
  std::string_view pooler = {}, dense = {}, norm = {}, classifier = {};
  std::string_view classifier_bias = {};  ///< where it is not called as the classifier
};

/// BERT's, without a head.
inline constexpr TensorNames kBertNames{.word_embeddings = "embeddings.word_embeddings",
                                        .position_embeddings = "embeddings.position_embeddings",
                                        .token_type_embeddings = "embeddings.token_type_embeddings",
                                        .embedding_norm = "embeddings.LayerNorm",
                                        .layers = "encoder.layer.",
                                        .query = "attention.self.query",
                                        .key = "attention.self.key",
                                        .value = "attention.self.value",
                                        .attention_output = "attention.output.dense",
                                        .norm1 = "attention.output.LayerNorm",
                                        .linear1 = "intermediate.dense",
                                        .linear2 = "output.dense",
                                        .norm2 = "output.LayerNorm"};

/// One architecture of transformers and how its checkpoints are read.
struct Family {
  std::span<const std::string_view> model_types;  ///< of config.json
  std::string_view architecture;                  ///< as in BertForSequenceClassification
  std::string_view prefix;                        ///< of the base model's tensors in checkpoints with a head
  TensorNames names;
  HeadNames text_classification, token_classification, question_answering, multiple_choice, fill_mask;
  std::span<const std::string_view> ignored;  ///< how tensors begin that other heads have: they may be there
  void (*configure)(const ConfigReader& config, ModelConfig& model);
  /// The class of transformers that reads its tokenizer where tokenizer_config.json names none, if that has settings of its own.
  std::string_view tokenizer_class = {};
  /// The same with other names of tensors, where a file has those.
  const Family* other = nullptr;
};

/// The pooler belongs to the base model; the classifier may be the word table, and its bias called otherwise.
enum class HeadPart : std::uint8_t { pooler, linear, norm, classifier };

/// What a head is made of, in the order of its work: add(kind, its name in files, ours, whether it has a bias).
template <class Add>
void for_each_part_of_head(const ModelConfig& config, Add add) {
  const HeadNames& names = config.head_names();
  if (!names.pooler.empty()) add(HeadPart::pooler, names.pooler, "classifier_dense", true);
  if (!names.dense.empty()) add(HeadPart::linear, names.dense, "classifier_dense", config.classifier_dense_bias);
  if (!names.norm.empty()) add(HeadPart::norm, names.norm, "classifier_norm", config.norm_bias);
  add(HeadPart::classifier, names.classifier, "classifier", config.task != Task::fill_mask || config.decoder_bias);
}

extern const Family kBert, kDistilBert, kRoberta, kCamembert, kData2VecText, kMpnet, kModernBert, kErnie, kElectra, kDeberta, kAlbert, kNomicBert,
    kJinaBert, kGte, kNew;

/// BERT's heads of tokens and of choices, as most families call them.
inline constexpr HeadNames kTokenHead{.classifier = "classifier"}, kAnswerHead{.classifier = "qa_outputs"},
    kPooledHead{.pooler = "pooler.dense", .classifier = "classifier"};
/// The one that fills masks, as BERT and RoBERTa call it.
inline constexpr HeadNames kBertMaskHead{.dense = "cls.predictions.transform.dense",
                                         .norm = "cls.predictions.transform.LayerNorm",
                                         .classifier = "cls.predictions.decoder",
                                         .classifier_bias = "cls.predictions.bias"},
    kRobertaMaskHead{.dense = "lm_head.dense", .norm = "lm_head.layer_norm", .classifier = "lm_head.decoder", .classifier_bias = "lm_head.bias"};

/// Encoders with rotary positions and a gate, as transformers calls their tensors.
inline constexpr TensorNames kRotaryNames{.word_embeddings = "embeddings.word_embeddings",
                                          .token_type_embeddings = "embeddings.token_type_embeddings",
                                          .embedding_norm = "embeddings.LayerNorm",
                                          .layers = "layers.",
                                          .query = "self_attn.q_proj",
                                          .key = "self_attn.k_proj",
                                          .value = "self_attn.v_proj",
                                          .attention_output = "self_attn.o_proj",
                                          .norm1 = "post_attention_layernorm",
                                          .linear1 = "mlp.up_proj",
                                          .gate = "mlp.gate_proj",
                                          .linear2 = "mlp.down_proj",
                                          .norm2 = "post_mlp_layernorm"};

/// BERT with other names, and its heads.
constexpr Family bert_family(std::span<const std::string_view> types, std::string_view architecture, std::string_view prefix,
                             std::span<const std::string_view> ignored, void (*configure)(const ConfigReader& config, ModelConfig& model),
                             const TensorNames& names = kBertNames) {
  return {.model_types = types,
          .architecture = architecture,
          .prefix = prefix,
          .names = names,
          .text_classification = kPooledHead,
          .token_classification = kTokenHead,
          .question_answering = kAnswerHead,
          .multiple_choice = kPooledHead,
          .fill_mask = kBertMaskHead,
          .ignored = ignored,
          .configure = configure,
          .tokenizer_class = "BertTokenizer"};
}

/// How config.json calls what every family has and not all spell alike; null for what it does not have.
struct SizeNames {
  const char *hidden_size = "hidden_size", *num_hidden_layers = "num_hidden_layers", *num_attention_heads = "num_attention_heads";
  const char *intermediate_size = "intermediate_size", *hidden_act = "hidden_act", *layer_norm_eps = "layer_norm_eps";
  const char* positions = "max_position_embeddings";
  // Where they are left out, as transformers has them.
  std::int64_t max_position_embeddings = 512, pad_token_id = 0;
};

/// Reads them, the vocabulary and the positions. layer_norm_eps stays as it is where it is missing.
void configure_sizes(const ConfigReader& config, ModelConfig& model, const SizeNames& names = {});

/// Rotary positions of this base in all layers, and no table of positions.
void configure_rotary(ModelConfig& model, double theta);
/// The same as transformers writes them: rope_parameters, in older files rope_theta and rope_scaling.
void configure_rope_parameters(const ConfigReader& config, ModelConfig& model, double theta);

/// BERT's dropout, by its names, `otherwise` where the file says nothing; the head has it before its last map. Families read theirs only where there
/// are gradients: nothing else needs it.
void configure_dropout(const ConfigReader& config, ModelConfig& model, float otherwise = 0.1F);

}  // namespace attn::detail
