#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attn/io/json.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/pooling.hpp"

namespace attn::detail {

struct Family;

/// How a position gets its row of the table.
enum class PositionRows : std::uint8_t {
  none,      ///< there is no table
  counted,   ///< 0, 1, 2 ...
  from_ids,  ///< padding_idx + the number of ids so far that are not padding_idx; padding_idx for those that are (fairseq)
};

/// What a layer makes of distances; see KeyDistance.
struct LayerDistance {
  double rope_theta = 0;    ///< 0: no rotary positions
  std::int64_t window = 0;  ///< 0: none
};

/// What makes scores of the head's logits, as transformers' TextClassificationPipeline does.
enum class ClassificationFunction : std::uint8_t {
  softmax,
  sigmoid,  ///< of each: several labels may hold, or there is one
  none,     ///< a regression
};

/// A checkpoint as its config.json describes it, whatever the family's names for things are.
struct ModelConfig {
  const Family* family = nullptr;
  std::int64_t vocab_size = 0, hidden_size = 0, num_hidden_layers = 0, num_attention_heads = 0, intermediate_size = 0;
  Activation hidden_act = Activation::gelu;
  float layer_norm_eps = 1e-12F;

  std::int64_t max_position_embeddings = 0;  ///< rows of the position table, or of rotary angles
  std::int64_t max_length = 0;               ///< ids of the longest sequence
  PositionRows positions = PositionRows::counted;
  std::int64_t padding_idx = 0;               ///< for PositionRows::from_ids
  std::int64_t type_vocab_size = 0;           ///< 0: no token types
  std::int64_t position_buckets = 0;          ///< of a bias by distance, shared by all layers (T5's); 0: none
  std::vector<LayerDistance> distances = {};  ///< by layer, or none

  bool norm_first = false;  ///< then the first layer has no norm1, and there is one after the last
  bool gated = false;
  bool attention_bias = true, mlp_bias = true, norm_bias = true;

  // The head of a sequence classification; labels are empty where there is none.
  std::vector<std::string> labels = {};
  ClassificationFunction classification_function = ClassificationFunction::softmax;
  Pooling classifier_pooling = Pooling::cls;
  Activation classifier_activation = Activation::tanh;
  bool classifier_norm = false, classifier_bias = true;

  // What sentence-transformers' files say.
  Pooling pooling = Pooling::mean;
  bool normalize = false;
  /// Ids that a text is cut to unless the call says otherwise.
  std::int64_t default_length = 0;
  /// Texts are made lower-case before they are tokenized.
  bool lower_case = false;

  std::int64_t num_labels() const { return static_cast<std::int64_t>(labels.size()); }
};

/// Reads members of one JSON file; whatever it has besides is left alone.
class ConfigReader {
 public:
  ConfigReader(std::string_view file, const Json& json, std::string path = "") : file_(file), json_(json), path_(std::move(path)) {}

  bool has(std::string_view name) const { return json_.find(name) != nullptr; }
  const Json* find(std::string_view name) const { return json_.find(name); }
  /// Whether it is written out as null; has() and find() take that for missing.
  bool is_null(std::string_view name) const { return json_.object() != nullptr && json_.object()->contains(name) && !has(name); }
  /// Throws CONFIG where it is missing, no whole number, or out of its range.
  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most) const;
  std::int64_t whole(std::string_view name, std::int64_t least, std::int64_t most, std::int64_t otherwise) const;
  /// A size: 1 to 2³¹ - 1.
  std::int64_t size(std::string_view name) const { return whole(name, 1, 0x7fffffff); }
  double positive(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::string string(std::string_view name, std::string_view otherwise) const;
  Activation activation(std::string_view name) const;
  /// A member that is an object; an empty one where it is missing.
  ConfigReader object(std::string_view name) const;
  /// Throws UNSUPPORTED unless the member is missing or is `value`.
  void only(std::string_view name, std::string_view value) const;
  void only_false(std::string_view name) const;

  [[noreturn]] void refuse(ErrorCode code, std::string_view name, std::initializer_list<TextPart> expected,
                           std::initializer_list<TextPart> got) const;

 private:
  std::string_view file_;
  const Json& json_;
  std::string path_;
};

/// The small files of a checkpoint; all but config.json may be missing (empty).
struct ModelFiles {
  std::span<const std::uint8_t> config = {};                ///< config.json
  std::span<const std::uint8_t> modules = {};               ///< modules.json
  std::span<const std::uint8_t> pooling = {};               ///< 1_Pooling/config.json
  std::span<const std::uint8_t> sentence_bert_config = {};  ///< sentence_bert_config.json
  std::span<const std::uint8_t> tokenizer_config = {};      ///< tokenizer_config.json
};

/// Throws FORMAT for what is not JSON, CONFIG for values out of range, UNSUPPORTED for models that attn does not have.
ModelConfig read_model_config(const ModelFiles& files);

}  // namespace attn::detail
