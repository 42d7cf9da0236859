#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn/io/json.hpp"
#include "attn/models/task.hpp"
#include "attn/ops/activation.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/ops/pooling.hpp"

namespace attn::detail {

struct Family;
struct HeadNames;

/// How a position gets its row of the table.
enum class PositionRows : std::uint8_t {
  none,      ///< there is no table
  counted,   ///< 0, 1, 2 ...
  from_ids,  ///< padding_idx + the number of ids so far that are not padding_idx; padding_idx for those that are (fairseq)
};

/// What a layer makes of distances; see KeyDistance.
struct LayerDistance {
  double rope_theta = 0;     ///< 0: no rotary positions
  std::int64_t window = -1;  ///< -1: none
};

/// Positions as disentangled attention takes them (He et al. 2020): a table with a row for each distance of query and key, further ones
/// sharing them.
struct RelativeConfig {
  std::int64_t span = 0;          ///< half the rows; 0: there is no table
  std::int64_t buckets = 0;       ///< 0: a row for each distance up to the span
  std::int64_t max_distance = 0;  ///< that the buckets are for
  bool has_norm = false;
  bool c2p = false, p2c = false;    ///< content to position, position to content
  bool shares_projections = false;  ///< their rows go through the layer's own maps of queries and keys
  std::int64_t scale_factor = 1;

  std::int64_t rows() const { return 2 * span; }
  /// Of a key `distance` before its query. Rises with it.
  std::int64_t row(std::int64_t distance) const;
};

/// What makes scores of the head's logits, as transformers' TextClassificationPipeline does, or as a cross-encoder's files say.
enum class ClassificationFunction : std::uint8_t {
  softmax,
  sigmoid,  ///< of each: several labels may hold, or there is one
  none,     ///< a regression
};

/// What comes after the pooling: activation(W x + b)                                   (sentence-transformers' Dense)
struct DenseConfig {
  std::int64_t in_features = 0, out_features = 0;
  bool bias = true;
  Activation activation = Activation::tanh;
};

/// A text that goes before others, by its name.
struct Prompt {
  std::string name = {}, text = {};
};

/// A checkpoint as its config.json describes it, whatever the family's names for things are.
struct ModelConfig {
  const Family* family = nullptr;
  Task task = Task::embedding;
  std::int64_t vocab_size = 0, hidden_size = 0, num_hidden_layers = 0, num_attention_heads = 0, intermediate_size = 0;
  std::int64_t word_size = 0;         ///< width of the tables; 0: the hidden size
  bool embedding_projection = false;  ///< a map from it to the hidden size
  /// Layers are used more than once: as many groups of so many layers, each group several times in a row. 0: each layer once.
  std::int64_t hidden_groups = 0, inner_layers = 1;
  Activation hidden_act = Activation::gelu;
  float layer_norm_eps = 1e-12F;

  std::int64_t max_position_embeddings = 0;  ///< rows of the position table, or of rotary angles
  std::int64_t max_length = 0;               ///< ids of the longest sequence
  PositionRows positions = PositionRows::counted;
  std::int64_t padding_idx = 0;               ///< for PositionRows::from_ids
  std::int64_t pad_token_id = -1;             ///< row of the word table that gets no gradient; -1: none
  std::int64_t type_vocab_size = 0;           ///< 0: no token types
  std::int64_t task_type_vocab_size = 0;      ///< rows of a table of which each place gets the first; 0: none
  std::int64_t position_buckets = 0;          ///< of a bias by distance, shared by all layers (T5's); 0: none
  bool alibi = false;                         ///< a bias by distance that falls with a slope of each head's own
  std::vector<LayerDistance> distances = {};  ///< by layer, or none
  RelativeConfig relative = {};
  bool clears_padding = false;    ///< embeddings of padding are 0, and it attends to nothing
  double rope_factor = 1;         ///< what rotary positions are divided by
  std::int64_t rotary_width = 0;  ///< columns of a head that turn; 0: all

  bool norm_first = false;  ///< then the first layer has no norm1, and there is one after the last
  bool gated = false;
  bool attention_bias = true, norm_bias = true;
  bool mlp_bias = true, mlp_output_bias = true;  ///< of the feed-forward's first maps, and of its last

  // What the file has as int8 with a scale for each row.
  bool quantized = false;        ///< weights of linear maps
  bool quantized_words = false;  ///< the word table, too

  // The head, where there is one.
  std::vector<std::string> labels = {};  ///< of a classification, of texts or of tokens; else none
  ClassificationFunction classification_function = ClassificationFunction::softmax;
  /// The same of a text that is not one of a pair: a cross-encoder's files speak of pairs, or of a single label.
  ClassificationFunction text_function = ClassificationFunction::softmax;
  Pooling classifier_pooling = Pooling::cls;
  Activation classifier_activation = Activation::tanh;
  bool classifier_dense_bias = true;
  Activation decoder_activation = Activation::gelu;  ///< of the head that fills masks, as the next
  bool decoder_bias = true;
  bool tie_word_embeddings = true;  ///< it multiplies by the word table

  DropoutProbabilities dropout = {};  ///< in training; not checked

  // What sentence-transformers' files say.
  std::vector<Pooling> poolings = {Pooling::mean};  ///< their results side by side
  std::optional<DenseConfig> dense = std::nullopt;
  bool normalize = false;
  std::int64_t truncate_dim = 0;  ///< the first so many numbers of a vector are it; 0: all
  std::vector<Prompt> prompts = {};
  std::string default_prompt = {};  ///< its text, which goes before a text unless the call says otherwise
  bool include_prompt = true;       ///< whether what is pooled has the prompt's tokens, too
  /// Ids that a text is cut to unless the call says otherwise.
  std::int64_t default_length = 0;
  /// Texts are made lower-case before they are tokenized.
  bool lower_case = false;
  /// Whether token types are what tokenizer.json says; where not, all are 0.
  bool token_types = true;

  std::vector<std::string> notes = {};  ///< what the files have that changes nothing, though it may have been meant to

  /// As Tokenizer::parse takes it.
  std::string_view tokenizer_class() const;
  std::int64_t num_labels() const { return static_cast<std::int64_t>(labels.size()); }
  bool has_head() const { return task != Task::embedding; }
  /// Whether the head says something of each token, not of the text.
  bool of_tokens() const { return task == Task::token_classification || task == Task::fill_mask || task == Task::question_answering; }
  /// Names of the head's tensors.
  const HeadNames& head_names() const;
  /// Numbers of the head's result.
  std::int64_t outputs() const;
  bool is_tied() const { return task == Task::fill_mask && tie_word_embeddings; }
  /// Layers that there are weights of; num_hidden_layers says how many times one is used.
  std::int64_t stored_layers() const { return hidden_groups > 0 ? hidden_groups * inner_layers : num_hidden_layers; }
  /// Which of them comes in that place.
  std::int64_t stored_layer(std::int64_t place) const;
  /// Width of the word table.
  std::int64_t word_width() const { return word_size > 0 ? word_size : hidden_size; }
  /// Width of what so many poolings give, after the map that follows them.
  std::int64_t embedding_size(std::size_t count) const {
    const std::int64_t size = whole_embedding_size(count);
    return truncate_dim > 0 && truncate_dim < size ? truncate_dim : size;
  }
  /// Before truncate_dim.
  std::int64_t whole_embedding_size(std::size_t count) const { return dense ? dense->out_features : hidden_size * static_cast<std::int64_t>(count); }
};

/// Reads members of one JSON file; whatever it has besides is left alone. It owns nothing, and what it gives lies in the file: nothing is to be
/// taken down where a member is refused, which in WebAssembly was a third of all that reads config.json.
class ConfigReader {
 public:
  /// The name and the file outlive it.
  ConfigReader(const char* file, const Json& json) : name_(file), json_(json) {}

  bool has(const char* name) const { return find(name) != nullptr; }
  const Json* find(const char* name) const;
  /// Whether it is written out as null; has() and find() take that for missing.
  bool is_null(const char* name) const;
  /// Throws CONFIG where it is missing, no whole number, or out of its range.
  std::int64_t whole(const char* name, std::int64_t least, std::int64_t most) const;
  std::int64_t whole(const char* name, std::int64_t least, std::int64_t most, std::int64_t otherwise) const;
  /// A size: 1 to 2³¹ - 1.
  std::int64_t size(const char* name) const { return whole(name, 1, 0x7fffffff); }
  double positive(const char* name, double otherwise) const;
  /// What is no number is NaN: who asks for it checks it.
  float number(const char* name, float otherwise) const;
  bool flag(const char* name, bool otherwise) const;
  std::string_view string(const char* name, std::string_view otherwise) const;
  Activation activation(const char* name) const;
  /// A member that is an object; an empty one where it is missing. It refers to this one.
  ConfigReader object(const char* name) const&;
  ConfigReader object(const char* name) && = delete;
  /// Throws UNSUPPORTED unless the member is missing or is `value`.
  void only(const char* name, std::string_view value) const;
  void only_false(const char* name) const;

  [[noreturn]] void refuse(ErrorCode code, const char* name, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got,
                           std::string_view help = {}) const;

 private:
  ConfigReader(const ConfigReader& parent, const char* name, const Json& json) : parent_(&parent), name_(name), json_(json) {}

  const ConfigReader* parent_ = nullptr;
  const char* name_;  ///< the file's, or in the parent
  const Json& json_;
};

/// The files of a checkpoint besides its weights. All but config.json may be missing; one that is there and empty is FORMAT.
struct ModelFiles {
  using File = std::optional<std::span<const std::uint8_t>>;

  std::span<const std::uint8_t> config = {};  ///< config.json
  File modules = {};                          ///< modules.json
  File pooling = {};                          ///< config.json of the folder that modules.json says is the pooling's: 1_Pooling
  File sentence_bert_config = {};             ///< sentence_bert_config.json
  File tokenizer_config = {};                 ///< tokenizer_config.json
  File prompts = {};                          ///< config_sentence_transformers.json
  File dense = {}, dense_weights = {};        ///< config.json and model.safetensors of the folder of Dense: 2_Dense
};

/// The largest of them that is read.
inline constexpr std::size_t kMaxConfig = 4 << 20;

/// A value in words; of a string, those of the file.
TextPart words_of(const Json& json);

inline constexpr std::int64_t kMaxLayers = 10'000;

/// Throws FORMAT for what is not JSON, CONFIG for values out of range, UNSUPPORTED for models that attn does not have.
ModelConfig read_model_config(const ModelFiles& files);

}  // namespace attn::detail
