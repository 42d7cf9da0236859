#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn/io/json.hpp"
#include "attn/layers/layer_variant.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/models/image_config.hpp"
#include "attn/models/rope_scaling.hpp"
#include "attn/models/task.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/ops/pooling.hpp"

namespace attn::detail {

struct Family;
struct HeadNames;

enum class PositionRows : std::uint8_t {
  none,
  counted,   ///< 0, 1, 2, …
  from_ids,  ///< padding_idx + number of ids so far that are not padding_idx; padding itself gets padding_idx (fairseq)
};

/// A layer's RoPE base and window; see KeyDistance.
struct LayerDistance {
  double rope_theta = 0;     ///< 0: no rotary positions
  std::int64_t window = -1;  ///< -1: none
  bool unscaled = false;     ///< RoPE without ModelConfig::rope
};

/// DeBERTa's relative positions (He et al. 2020): a table with one row per distance; large distances share rows.
struct RelativeConfig {
  std::int64_t span = 0;     ///< half the number of rows; 0: no table
  std::int64_t buckets = 0;  ///< 0: one row per distance up to the span
  std::int64_t max_distance = 0;
  bool has_norm = false;
  bool c2p = false, p2c = false;
  bool shares_projections = false;  ///< the rows use the layer's query and key projections
  std::int64_t scale_factor = 1;

  std::int64_t rows() const { return 2 * span; }
  /// The key is `distance` positions before its query.
  std::int64_t row(std::int64_t distance) const;
};

enum class ClassificationFunction : std::uint8_t {
  softmax,
  sigmoid,  ///< several labels may hold, or there is only one
  none,     ///< a regression
};

/// sentence-transformers' Dense, applied after pooling: activation(W x + b).
struct DenseConfig {
  std::int64_t in_features = 0, out_features = 0;
  bool bias = true;
  Activation activation = Activation::tanh;
  std::string folder = "2_Dense";
};

struct Prompt {
  std::string name = {}, text = {};
};

/// Independent of a family's names in config.json.
struct ModelConfig {
  const Family* family = nullptr;
  Task task = Task::embedding;
  std::int64_t vocab_size = 0, hidden_size = 0, num_hidden_layers = 0, num_attention_heads = 0, intermediate_size = 0;
  std::int64_t word_size = 0;         ///< width of the embedding tables; 0: the hidden size
  bool embedding_projection = false;  ///< from word_size to hidden_size
  /// Shared layers: each group of `inner_layers` layers runs several times in a row. 0: each layer runs once.
  std::int64_t hidden_groups = 0, inner_layers = 1;
  Activation hidden_act = Activation::gelu;
  float layer_norm_eps = 1e-12F;

  std::int64_t max_position_embeddings = 0;  ///< also the number of rotary angles
  std::int64_t max_length = 0;               ///< of the longest sequence
  PositionRows positions = PositionRows::counted;
  std::int64_t padding_idx = 0;
  std::int64_t pad_token_id = -1;         ///< row of the word embeddings that gets no gradient; -1: none
  std::int64_t type_vocab_size = 0;       ///< 0: no token types
  std::int64_t task_type_vocab_size = 0;  ///< rows of the table whose first row is added at every position; 0: none
  std::int64_t position_buckets = 0;      ///< T5's bias by distance, shared by all layers; 0: none
  bool alibi = false;
  std::vector<LayerDistance> distances = {};  ///< one per layer, or empty
  RelativeConfig relative = {};
  bool clears_padding = false;  ///< padding has zero embeddings and attends to nothing
  RopeScaling rope = {};
  std::int64_t rotary_width = 0;  ///< rotated columns of a head; 0: all

  bool is_causal = false;                ///< padding takes no positions
  std::int64_t num_key_value_heads = 0;  ///< 0: as many as heads
  std::int64_t head_dim = 0;             ///< 0: hidden_size / num_attention_heads
  NormKind norm = NormKind::layer_norm;
  bool norm_first = false;    ///< also a norm after the last layer
  bool normed_input = false;  ///< with norm_first: the first layer has no norm1
  bool gated = false;
  LayerVariant layer = {};
  float embedding_scale = 1;
  float attention_softcap = 0, logit_softcap = 0;  ///< c · tanh(x / c); 0: none
  bool attention_bias = true, attention_output_bias = true, norm_bias = true;
  bool mlp_bias = true, mlp_output_bias = true;  ///< of linear1 and the gate; of linear2

  ImageConfig image = {};

  // int8 with one scale per row.
  bool quantized = false;
  bool quantized_words = false;

  std::vector<std::string> labels = {};
  ClassificationFunction classification_function = ClassificationFunction::softmax;
  /// For single texts: a cross-encoder's function applies to them only if there is one label.
  ClassificationFunction text_function = ClassificationFunction::softmax;
  Pooling classifier_pooling = Pooling::cls;
  Activation classifier_activation = Activation::tanh;
  bool classifier_dense_bias = true;
  Activation decoder_activation = Activation::gelu;  ///< of the fill-mask head, as are the next two
  bool decoder_bias = true;                          ///< also of the head of a language model
  bool tie_word_embeddings = true;

  std::vector<std::int64_t> eos_token_ids = {};

  DropoutProbabilities dropout = {};  ///< check_fine_tuning() checks their range

  // From sentence-transformers' files.
  std::vector<Pooling> poolings = {Pooling::mean};  ///< concatenated
  std::vector<DenseConfig> denses = {};
  bool normalize = false;
  std::int64_t truncate_dim = 0;  ///< 0: no limit
  std::vector<Prompt> prompts = {};
  std::string default_prompt = {};
  bool include_prompt = true;  ///< pools the prompt's tokens
  std::int64_t default_length = 0;
  bool lower_case = false;
  /// If false, all token types are 0.
  bool token_types = true;

  std::vector<std::string> notes = {};  ///< settings in the files that have no effect

  /// Returns the default class for Tokenizer::parse().
  std::string_view tokenizer_class() const;
  std::int64_t num_labels() const { return static_cast<std::int64_t>(labels.size()); }
  bool has_head() const { return task != Task::embedding; }
  bool of_tokens() const { return task == Task::token_classification || task == Task::question_answering || predicts_tokens(); }
  bool predicts_tokens() const { return task == Task::fill_mask || task == Task::text_generation; }
  const HeadNames& head_names() const;
  std::int64_t outputs() const;
  bool is_tied() const { return predicts_tokens() && tie_word_embeddings; }
  /// Less than num_hidden_layers if layers are shared.
  std::int64_t stored_layers() const { return hidden_groups > 0 ? hidden_groups * inner_layers : num_hidden_layers; }
  std::int64_t stored_layer(std::int64_t place) const;
  std::int64_t head_width() const { return head_dim > 0 ? head_dim : hidden_size / num_attention_heads; }
  std::int64_t word_width() const { return word_size > 0 ? word_size : hidden_size; }
  /// For `count` concatenated poolings, after Dense and truncate_dim.
  std::int64_t embedding_size(std::size_t count) const {
    const std::int64_t size = whole_embedding_size(count);
    return truncate_dim > 0 && truncate_dim < size ? truncate_dim : size;
  }
  std::int64_t whole_embedding_size(std::size_t count) const {
    return denses.empty() ? hidden_size * static_cast<std::int64_t>(count) : denses.back().out_features;
  }
};

/// Reads members of a JSON file. It holds only references, so that an error needs no destructors: their code would be a third of the WebAssembly
/// code that reads config.json.
class ConfigReader {
 public:
  /// Both arguments must outlive the reader.
  ConfigReader(const char* file, const Json& json) : name_(file), json_(json) {}

  bool has(const char* name) const { return find(name) != nullptr; }
  const Json* find(const char* name) const;
  bool is_empty() const;
  /// has() and find() treat null as missing.
  bool is_null(const char* name) const;
  std::int64_t whole(const char* name, std::int64_t least, std::int64_t most) const;
  std::int64_t whole(const char* name, std::int64_t least, std::int64_t most, std::int64_t otherwise) const;
  std::int64_t size(const char* name) const { return whole(name, 1, 0x7fffffff); }
  double positive(const char* name, double otherwise) const;
  /// Returns NaN for a value that is not a number; callers check the range.
  float number(const char* name, float otherwise) const;
  bool flag(const char* name, bool otherwise) const;
  std::string_view string(const char* name, std::string_view otherwise) const;
  Activation activation(const char* name, Activation otherwise = Activation::gelu) const;
  /// A missing member reads as an empty object. The result refers to this reader.
  ConfigReader object(const char* name) const&;
  ConfigReader object(const char* name) && = delete;
  void only(const char* name, std::string_view value) const;
  void only_false(const char* name) const;
  /// Whether layer_types has sliding_attention for the layer; `otherwise` without the list.
  bool is_sliding(std::size_t layer, bool otherwise) const;

  [[noreturn]] void refuse(ErrorCode code, const char* name, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got,
                           std::string_view help = {}) const;

 private:
  ConfigReader(const ConfigReader& parent, const char* name, const Json& json) : parent_(&parent), name_(name), json_(json) {}

  const ConfigReader* parent_ = nullptr;
  const char* name_;  ///< of the file, or of the member in its parent
  const Json& json_;
};

/// A checkpoint's files except the transformer's weights. Only config.json is required.
struct ModelFiles {
  using File = std::optional<std::span<const std::uint8_t>>;
  struct Dense {
    File config = {}, weights = {};
  };

  std::span<const std::uint8_t> config = {};
  File modules = {};
  File pooling = {};  ///< config.json of the pooling folder
  File sentence_bert_config = {};
  File tokenizer_config = {};
  File prompts = {};
  std::vector<Dense> denses = {};  ///< in the order of modules.json
  File generation = {};
};

/// Bytes per file.
inline constexpr std::size_t kMaxConfig = 4 << 20;

TextPart words_of(const Json& json);

inline constexpr std::int64_t kMaxLayers = 10'000;

/// Throws FORMAT for invalid JSON, CONFIG for values out of range, UNSUPPORTED for models that attn does not have.
ModelConfig read_model_config(const ModelFiles& files);

/// The default class for Tokenizer::parse(); empty for families that attn does not have.
std::string_view tokenizer_class_of(std::span<const std::uint8_t> config_json);

}  // namespace attn::detail
