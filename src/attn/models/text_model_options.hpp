#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attn/io/side.hpp"
#include "attn/io/tokenizer.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/memory/key_value_cache.hpp"
#include "attn/models/attribution.hpp"
#include "attn/models/output_logits.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/results.hpp"

// Options and results of TextModel. Those of its text tasks are in text_tasks.hpp, those of language models in text_generation.hpp.
namespace attn {

/// Number type in which the weights of linear layers are stored and multiplied.
enum class Weights : std::uint8_t {
  float32,
  int8,  ///< 8 bits with one scale per row
};

/// Options for TextModel::load().
struct TextModelOptions {
  std::optional<Weights> weights = std::nullopt;  ///< default: int8 if the checkpoint is int8, else float32
  /// Creates the tokenizer if Tokenizer does not support a part of tokenizer.json. Receives the arguments of Tokenizer::parse.
  std::function<std::shared_ptr<const TextTokenizer>(std::span<const std::uint8_t> tokenizer_json,
                                                     std::optional<std::span<const std::uint8_t>> tokenizer_config, std::string_view default_class)>
      tokenizer = nullptr;
};

/// Number type of the weights in a saved file.
enum class FileWeights : std::uint8_t {
  float32,
  float16,  ///< rounded to nearest, ties to even
  int8,     ///< linear layers and word embeddings in the format of compressed-tensors; the rest is float32
};

/// Options for TextModel::save_pretrained().
struct SaveOptions {
  std::optional<FileWeights> weights = std::nullopt;  ///< default: number type of the loaded model
};

/// Replaces intermediate results of one layer by the given values, which need not be finite, to see how the output depends on them (activation
/// patching: Vig et al. 2020).
struct LayerPatch {
  std::int64_t layer = 0;                                 ///< index of the layer, from 0
  std::optional<TensorCopy> hidden_state = std::nullopt;  ///< (B,L,E), input of the layer
  std::optional<TensorCopy> merged = std::nullopt;        ///< (B,L,E), results of the heads, concatenated, before W_O
  /// Projected queries (B,L,H·D), keys (B,L,Hkv·D) and values (B,L,Hkv·Dv), with biases, before head norms and RoPE.
  std::optional<TensorCopy> q_proj = std::nullopt, k_proj = std::nullopt, v_proj = std::nullopt;
  std::optional<TensorCopy> weights = std::nullopt;  ///< (B,H,L,L), attention weights after softmax, of any value; not with a cache
};

/// Options for TextModel::forward().
struct TextForwardOptions {
  bool output_attentions = false;     ///< return the attention weights of every layer
  bool output_hidden_states = false;  ///< return the input of every layer, and the output
  /// Tokens whose logits to return; logits of a vocabulary are large and take as long as several layers.
  OutputLogits output_logits = true;
  /// Mask for every layer, as in AttentionOptions, in addition to the masks of the padding and of the model. A query whose keys are all masked
  /// attends to every key with equal weight, as in transformers.
  std::optional<Mask> mask = std::nullopt;
  bool is_causal = false;  ///< no token attends to later tokens, in any layer
  /// (layers,H), factors for the result of each head before W_O, applied after patches; 0 switches a head off (Michel et al. 2019). Attentions and
  /// the trace `context` are the values before the multiplication; `merged` is the input of W_O.
  std::optional<TensorCopy> head_mask = std::nullopt;
  std::vector<LayerPatch> patches = {};  ///< of different layers, or of different values of one
  /// (B,L,W), used instead of the rows of the word embeddings, to which positions, types and a norm are still applied; positions are counted from
  /// the first. The token ids then only give the shape.
  std::optional<TensorCopy> inputs_embeds = std::nullopt;
  std::optional<EncoderTraceOptions> trace = std::nullopt;
  /// Keys and values of earlier tokens, made by create_cache(): the inputs are the tokens that follow, and the S of results counts all tokens.
  KeyValueCache* cache = nullptr;
};

/// Result of TextModel::forward(). N is the rank of the token ids, 2.
template <std::size_t N>
struct TextModelTensors {
  TensorOf<N + 1> last_hidden_state;  ///< (B,L,E)
  /// Present if the checkpoint has a head: (B,C) for text-classification; (B,L,C) for token-classification, fill-mask and text-generation, C labels
  /// or vocabulary entries, with OutputLogits::last (B,1,C); (B,L,2) for question-answering, start and end of an answer; (B,1) for multiple-choice,
  /// one row per choice.
  std::optional<TensorOf<kAnyBeside<N>>> logits;
  std::optional<std::vector<TensorOf<N + 2>>> attentions;     ///< by layer (B,H,L,L), on request
  std::optional<std::vector<TensorOf<N + 1>>> hidden_states;  ///< layers + 1 of (B,L,E), the last equals last_hidden_state; on request
  decltype(EncoderResult<N + 1>::trace) trace;                ///< AttentionTrace by layer, on request
};
using TextModelOutput = TextModelTensors<2>;

/// The scalar that is differentiated: a logit (`label`) or a component of the pooled vector (`component`) of one sequence.
struct GradientTarget {
  std::int64_t row = 0;  ///< index of the sequence
  /// Label of a logit before softmax, by index or name. For fill-mask it is a token, for question-answering "start" or "end".
  std::optional<std::variant<std::int64_t, std::string>> label = std::nullopt;
  std::optional<std::int64_t> component = std::nullopt;  ///< index into the pooled vector, before Dense and normalisation
  std::optional<std::int64_t> token = std::nullopt;      ///< position of the token whose logit it is, if the head has logits for each token
};

/// Options for TextModel::gradients().
struct GradientOptions {
  GradientTarget target;
  bool embeddings = false, attentions = false, parameters = false;  ///< compute gradients with respect to these
};

/// Result of TextModel::gradients(). N is the rank of the token ids, 2.
template <std::size_t N>
struct TextModelGradients {
  float value = 0;                                         ///< value of the target
  std::optional<TensorOf<N + 1>> embeddings;               ///< (B,L,E), for the word embedding at each position; on request
  std::optional<std::vector<TensorOf<N + 2>>> attentions;  ///< by layer (B,H,L,L), on request; 0 for keys that are hidden from the query
  std::optional<typename StateDictType<TextModelGradients<N>>::type> parameters;  ///< by the names of state_dict(), on request
};

/// Options for TextModel::attribute().
struct AttributeOptions {
  AttributionMethod method = AttributionMethod::integrated_gradients;
  /// A label by index or name, or a token by id or text; without a head, and for a head of tokens without `position`, an index into the pooled
  /// vector. Default: the output of the head with the largest logit.
  std::optional<std::variant<std::int64_t, std::string>> target = std::nullopt;
  std::optional<std::variant<std::int64_t, std::string>> contrast = std::nullopt;  ///< a label or token whose logit is subtracted
  /// Token whose logits these are, for a model with logits for each token. Default: the last token if the model is for text-generation, otherwise
  /// none.
  std::optional<std::int64_t> position = std::nullopt;
  std::int64_t steps = 50;  ///< number of steps for integrated_gradients, 1 to 10 000
};

/// How much each token of a text contributes to an output of the model.
struct TextAttribution {
  std::vector<std::string> tokens;  ///< including special tokens
  TokenOffsets offsets;             ///< as in Encoding
  std::vector<float> scores;        ///< one per token
  /// |Σ scores - (f(text) - f(baseline))| / |f(text) - f(baseline)|; only for integrated_gradients.
  std::optional<double> delta = std::nullopt;
};

/// A text or a pair of texts with the label that the model should learn. A language model learns the text's tokens instead of a label.
struct FineTuneExample {
  std::string text;
  /// Index or name of the label; with a single label a number from 0 to 1; for a regression any finite number; none for a language model.
  std::variant<std::int64_t, double, std::string> label = std::int64_t{0};
  std::optional<std::string> text_pair = std::nullopt;
  /// For a language model: what precedes the text. Its tokens have no loss.
  std::string prompt = {};
};

/// Progress report after each training step.
struct FineTuneProgress {
  std::int64_t epoch = 0, step = 0, steps = 0;  ///< counted from 1; `steps` is the total of the run
  double loss = 0;                              ///< loss of the batch before the step
  /// After the last step of an epoch; no accuracy for a regression.
  std::optional<double> validation_loss = std::nullopt, validation_accuracy = std::nullopt;
};

/// Options for TextModel::fine_tune().
struct FineTuneOptions {
  std::int64_t epochs = 3, batch_size = 16;
  std::optional<double> learning_rate = std::nullopt;  ///< initial learning rate, above 0; default 5e-5, or 1e-3 if only the head is trained
  double weight_decay = 0.01;                          ///< for all parameters except biases and norms
  /// Number of last layers that are trained together with the head; 0: only the head; default everything.
  std::optional<std::int64_t> layers = std::nullopt;
  /// Labels of the head. If they differ from those of the model, or if the model has no head, a new head is initialised. Default: the labels of the
  /// model, otherwise those of the examples: the names, sorted, or LABEL_0, LABEL_1 and so on.
  std::vector<std::string> labels = {};
  std::uint64_t seed = 0;  ///< for the order of the examples, dropout and a new head
  double validation = 0;   ///< share of the examples that is held out for validation, in [0, 1)
  /// Called after each step; returning false ends the run.
  std::function<bool(const FineTuneProgress&)> on_progress = nullptr;
};

/// Result of TextModel::fine_tune().
struct FineTuneResult {
  double loss = 0;                                           ///< mean over the steps of the last epoch
  std::optional<double> validation_accuracy = std::nullopt;  ///< for a language model the share of tokens that it would have predicted
};

/// Options for TextModel::embed().
struct EmbedOptions {
  std::optional<std::int64_t> max_length = std::nullopt;  ///< as in TokenizeOptions
  bool truncation = true;
  std::optional<Pooling> pooling = std::nullopt;  ///< any except none; default: 1_Pooling/config.json (one or several), else mean
  std::optional<bool> normalize = std::nullopt;   ///< scale vectors to length 1; default: true if modules.json has Normalize
  std::int64_t batch_size = 32;                   ///< texts per batch; does not affect the result
  /// Text that is prepended to each text; default: the prompt named prompt_name, else the default_prompt_name of config_sentence_transformers.json,
  /// else none.
  std::optional<std::string> prompt = std::nullopt;
  std::optional<std::string> prompt_name = std::nullopt;  ///< name of a prompt in config_sentence_transformers.json
  /// Called after each batch with the number of finished texts and of all texts. An exception from it ends the call.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
  bool add_special_tokens = true;                      ///< as in TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;  ///< as in TokenizeOptions
  std::vector<bool>* truncated = nullptr;              ///< if given, receives for each text whether it was truncated
};

/// Options for TextModel::classify().
struct ClassifyOptions {
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;
  std::int64_t batch_size = 32;
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as in EmbedOptions
  bool add_special_tokens = true;                                                    ///< as in TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;                                ///< as in TokenizeOptions
  std::optional<std::int64_t> top_k = std::nullopt;                                  ///< number of labels per text; default all
  std::vector<bool>* truncated = nullptr;                                            ///< as in EmbedOptions
};

/// A label and its score.
struct LabelScore {
  std::string label;
  float score = 0;
  std::int64_t index = 0;  ///< index in labels(), where names may repeat
};

/// Options for TextModel::create_cache().
struct CacheOptions {
  std::optional<std::int64_t> max_length = std::nullopt;  ///< room for tokens; default all positions of the model
  std::int64_t batch_size = 1;                            ///< number of sequences
};

}  // namespace attn
