#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "attn/io/file_path.hpp"
#include "attn/io/tokenizer.hpp"
#include "attn/layers/embedding.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/models/attribution.hpp"
#include "attn/models/model_gradient.hpp"
#include "attn/models/output_logits.hpp"
#include "attn/models/task.hpp"
#include "attn/models/text_generation.hpp"
#include "attn/models/text_tasks.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

class EncoderModel;
class TextModel;

/// Replaces the input or the merged heads of one layer by the given values, which need not be finite, to see how the output depends on them
/// (activation patching: Vig et al. 2020).
struct LayerPatch {
  std::int64_t layer = 0;                                 ///< index of the layer, from 0
  std::optional<TensorCopy> hidden_state = std::nullopt;  ///< (B,L,E), input of the layer
  std::optional<TensorCopy> merged = std::nullopt;        ///< (B,L,E), results of the heads, concatenated, before W_O
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
  /// (layers,H), factors for the result of each head before W_O, applied after a patch; 0 switches a head off (Michel et al. 2019). Attentions and
  /// the trace `context` are the values before the multiplication; `merged` is the input of W_O.
  std::optional<TensorCopy> head_mask = std::nullopt;
  std::optional<LayerPatch> patch = std::nullopt;
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
  /// A label by index or name; without a head, an index into the pooled vector. Default: the label with the largest logit; required without a head.
  std::optional<std::variant<std::int64_t, std::string>> target = std::nullopt;
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

/// A text or a pair of texts with the label that the model should learn.
struct FineTuneExample {
  std::string text;
  /// Index or name of the label; with a single label a number from 0 to 1; for a regression any finite number.
  std::variant<std::int64_t, double, std::string> label;
  std::optional<std::string> text_pair = std::nullopt;
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
  double loss = 0;  ///< mean over the steps of the last epoch
  std::optional<double> validation_accuracy = std::nullopt;
};

namespace detail {

class LensModel;  // models/lens_model.hpp
struct ModelPlan;

/// Returns the small files that a model was loaded from, by their name in its folder.
std::map<std::string, std::vector<std::uint8_t>> files_of(const TextModel& model);

/// Copies of the token ids that a caller passed: (B,L) each, row-major. Types and mask may be empty.
struct TokenIds {
  Shape shape, type_shape, mask_shape;
  std::vector<std::int64_t> ids, types;
  std::vector<std::uint8_t> mask;

  TokenIds() = default;
  template <std::size_t N>
  explicit TokenIds(const EncodingTensors<N>& from)
      : shape(to_shape(from.input_ids.shape())),
        type_shape(to_shape(from.token_type_ids.shape())),
        mask_shape(to_shape(from.attention_mask.shape())),
        ids(from.input_ids.begin(), from.input_ids.end()),
        types(from.token_type_ids.begin(), from.token_type_ids.end()),
        mask(from.attention_mask.begin(), from.attention_mask.end()) {}
};

/// One forward of a TextModel: the constructor checks the arguments and computes the result's shapes, run() computes the result.
class TextForward {
 public:
  TextForward(std::string_view op, const EncoderModel& model, const TokenIds& inputs, const TextForwardOptions& options,
              std::optional<EncoderTraceOptions> trace);
  ~TextForward();
  TextForward(const TextForward&) = delete;
  TextForward& operator=(const TextForward&) = delete;

  const EncoderPlan& encoder() const;
  const Shape& logits() const;  ///< rank 0 without a head
  void run(const EncoderBuffers& buffers, float* logits) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace detail

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

namespace detail {

/// State of one gradients() call after its forward. The label of the target is already an index.
class TextGradient {
 public:
  TextGradient(EncoderModel& model, const TokenIds& inputs, const GradientOptions& options);
  ~TextGradient();
  TextGradient(const TextGradient&) = delete;
  TextGradient& operator=(const TextGradient&) = delete;

  const ModelGradient& operator*() const;

 private:
  std::unique_ptr<ModelGradient> gradient_;
};

}  // namespace detail

/// A text model loaded from a Hugging Face checkpoint: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec-text,
/// MPNet, ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2, GTE, GPT-2, GPT-NeoX, Llama, Mistral, Qwen or
/// Gemma, with or without a head (transformers' AutoModel, AutoModelForTokenClassification and so on;
/// sentence-transformers' SentenceTransformer).
/// @code
/// auto model = attn::TextModel::load("testdata/models/sentiment");
/// std::cout << model.classify({"A wonderful film."}).at(0).at(0).label;  // positive
/// @endcode
class TextModel {
 public:
  /// Loads a folder with config.json and model.safetensors, or the files that model.safetensors.index.json names. Other files that it reads:
  /// tokenizer.json, tokenizer_config.json (special_tokens_map.json and added_tokens.json if it has no added_tokens_decoder),
  /// sentence_bert_config.json, modules.json and the folders that it names (1_Pooling, 2_Dense), and
  /// config_sentence_transformers.json. Floats of any width become float32. int8 weights must have the format of
  /// compressed-tensors: int-quantized, by row, with dynamic asymmetric activations by token. Tensors that the model
  /// does not use are skipped and listed in notes(). If the tokenizer cannot be read, the model still takes token ids.
  /// @param folder   the folder, or a .gguf file of a GPT-2, Llama or Qwen2; a string or std::filesystem::path
  /// @param options  int8 or float32 weights, and a tokenizer of your own
  /// @throws FORMAT if a file is damaged, empty, or not a regular file
  /// @throws CONFIG if config.json contradicts itself
  /// @throws MISMATCH with all missing and mis-shaped tensors
  /// @throws UNSUPPORTED for other models and quantisations; for texts, if attn does not support the tokenizer
  /// @throws MEMORY if the model exceeds the memory limit
  static TextModel load(const FilePath& folder, const TextModelOptions& options = {});
  /// Writes the model in the format of transformers: the current weights under the names of the checkpoint, config.json,
  /// and the other files that were read. load() reads the folder back; int8 weights are identical. Poolers and heads
  /// that attn does not use are not written. A missing folder is created. Either all files are replaced or none; links
  /// are replaced by files.
  ///
  /// @param folder   a string or std::filesystem::path
  /// @param options  float32, float16 or int8; default the type of the loaded model
  /// @throws OUT_OF_RANGE with the tensor's name if a weight is outside the range of float16
  /// @throws FORMAT with the tensor's name if NaN or infinity would become int8
  /// @throws ARGUMENT if the folder cannot be written; after an error no file has changed
  void save_pretrained(const FilePath& folder, const SaveOptions& options = {}) const;

  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;
  ~TextModel();

  /// Tokenizes texts, as Tokenizer::encode. The default of max_length is the value in sentence_bert_config.json, else in
  /// tokenizer_config.json, else the number of positions.
  ///
  /// @throws OUT_OF_RANGE if max_length exceeds the positions of the model
  /// @throws ARGUMENT, UNSUPPORTED, FORMAT, MEMORY as Tokenizer::encode
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, 0, texts.size(), options));
  }
  /// Tokenizes pairs of texts, each pair as one sequence. Throws as tokenize().
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(pairs, 0, pairs.size(), options));
  }

  /// Tokenizes texts that are split into words, as Tokenizer::encode_words.
  ///
  /// @throws UNSUPPORTED for a tokenizer of your own
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_words(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, options));
  }
  /// Tokenizes pairs of texts that are split into words. Throws as tokenize_words().
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_word_pairs(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(pairs, options));
  }

  /// Runs the model on token ids. The encoding needs only input_ids: without attention_mask every token is visible,
  /// without token_type_ids all types are 0.
  ///
  /// @param inputs   as tokenize() returns them
  /// @param options  masks, head mask, patch, and which intermediates to return
  /// @return last_hidden_state (B,L,E); logits if there is a head; attentions, hidden_states, trace on request
  /// @throws SHAPE if the shapes disagree
  /// @throws MASK if a mask does not fit
  /// @throws OUT_OF_RANGE for an unknown id, more ids than positions, or a layer that does not exist
  /// @throws MEMORY if the call would exceed the memory limit
  template <std::size_t N>
  TextModelTensors<N> forward(const EncodingTensors<N>& inputs, const TextForwardOptions& options = {}) const {
    const detail::TextForward forward("forward", encoder(), detail::TokenIds(inputs), options, options.trace);
    TextModelTensors<N> output;
    if (forward.logits().rank() > 0) output.logits = detail::empty<kAnyBeside<N>>(forward.logits());
    auto result = detail::run_encoder_plan<N + 1>(
        forward.encoder(), [&](const detail::EncoderBuffers& buffers) { forward.run(buffers, output.logits ? output.logits->data() : nullptr); });
    output.last_hidden_state = std::move(result.output);
    output.attentions = std::move(result.attentions);
    output.hidden_states = std::move(result.hidden_states);
    output.trace = std::move(result.trace);
    return output;
  }
  /// Returns every intermediate result of one layer.
  ///
  /// @param inputs  as tokenize() returns them
  /// @param layer   from 0
  /// @param names   default all but weighted_values
  /// @throws SHAPE, MASK, OUT_OF_RANGE, MEMORY as forward()
  template <std::size_t N>
  auto trace_layer(const EncodingTensors<N>& inputs, std::int64_t layer, Trace names = Trace::all()) const {
    const detail::TextForward forward("trace_layer", encoder(), detail::TokenIds(inputs), {}, trace_of(layer, names));
    auto result = detail::run_encoder_plan<N + 1>(forward.encoder(), [&](const detail::EncoderBuffers& buffers) { forward.run(buffers, nullptr); });
    return std::move((*result.trace)[layer]);
  }

  /// Computes the gradient of one number with respect to embeddings, attentions or parameters (torch.autograd.grad,
  /// without dropout).
  ///
  /// @param inputs   as tokenize() returns them
  /// @param options  target, and what to differentiate with respect to
  /// @throws UNSUPPORTED for int8 weights, and for a label without a head. Load with Weights::float32
  /// @throws ARGUMENT unless the target is either a label or a component, or if no gradients are requested
  /// @throws OUT_OF_RANGE if the label, component or row does not exist
  /// @throws SHAPE, MASK, MEMORY as forward()
  template <std::size_t N>
  TextModelGradients<N> gradients(const EncodingTensors<N>& inputs, const GradientOptions& options) {
    const detail::TextGradient of_text(encoder(), detail::TokenIds(inputs), numbered(options));
    const detail::ModelGradient& gradient = *of_text;
    TextModelGradients<N> result{gradient.value(), {}, {}, {}};
    std::vector<float*> attentions;
    StateTarget parameters;
    if (options.embeddings) result.embeddings = detail::empty<N + 1>(gradient.embeddings());
    if (options.attentions) {
      result.attentions.emplace().reserve(gradient.layers());
      for (std::size_t layer = 0; layer < gradient.layers(); ++layer)
        attentions.push_back(result.attentions->emplace_back(detail::empty<N + 2>(gradient.attentions())).data());
    }
    if (options.parameters)
      for (auto& all = result.parameters.emplace(); const auto& [name, shape] : parameter_shapes())
        parameters.emplace(name, all.emplace(name, detail::empty<kAnyBeside<N>>(shape)).first->second.data());
    gradient.run(result.embeddings ? result.embeddings->data() : nullptr, attentions, options.parameters ? &parameters : nullptr);
    return result;
  }
  /// Computes a score for each token of a text: how much it contributes to f, a logit before softmax, or without a head
  /// a component of the pooled vector. With leave_one_out special tokens get 0. A long text is truncated as by
  /// classify(). The methods are:
  /// integrated_gradients: Σ_e (x - b) · ∫₀¹ ∂f/∂x (b + a (x - b)) da by Gauss-Legendre quadrature, where x are the
  /// word embeddings and b is the embedding of [PAD], except at special tokens, where b = x (Sundararajan, Taly & Yan
  /// 2017).
  /// gradient_x_input: Σ_e x · ∂f/∂x.
  /// attention_rollout: the pooled rows of the product of 0.5 A + 0.5 I over the layers, A averaged over the heads
  /// (Abnar & Zuidema 2020).
  /// attention_gradient: the pooled rows of the product of I + Ā over the layers, Ā the positive part of A · ∂f/∂A
  /// averaged over the heads (Chefer, Gur & Wolf 2021).
  /// leave_one_out: f of the text minus f of the text without the token.
  ///
  /// @param text     UTF-8
  /// @param options  method, target, steps
  /// @throws UNSUPPORTED for gradients of int8 weights, or without a tokenizer
  /// @throws ARGUMENT if there is no head and no target
  /// @throws OUT_OF_RANGE if the target does not exist
  /// @throws CONFIG if steps is outside 1 to 10 000
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto result = model.attribute("A wonderful film.");
  /// std::cout << result.tokens.at(2);  // wonderful
  /// @endcode
  TextAttribution attribute(const std::string& text, const AttributeOptions& options = {}) const;

  /// Trains the model on examples, as transformers' Trainer does for sequence classification: AdamW with β 0.9 and
  /// 0.999, gradients clipped to norm 1, and a learning rate that falls linearly to 0. The loss is the cross entropy for
  /// several labels, the binary cross entropy for one, and the squared error for a regression. Dropout is applied at the
  /// same places as in transformers, with the probabilities of config.json; held-out examples are evaluated without it.
  /// With layers = 0 each text passes through the encoder once, without dropout. Weights, order and result depend only
  /// on the seed, not on the number of threads.
  ///
  /// @param examples  texts or pairs with labels
  /// @param options   epochs, batch size, learning rate, trained layers, labels, validation share
  /// @return mean loss of the last epoch, and the validation accuracy
  /// @throws UNSUPPORTED for int8 weights, without a tokenizer, and for heads with several outputs per text
  /// @throws ARGUMENT if there are no examples
  /// @throws OUT_OF_RANGE if labels or layers do not exist; with the step's number if a loss or gradient is not
  /// finite
  /// @throws CONFIG if an option is outside its range
  /// @throws MEMORY if a step would exceed the memory limit. Weights are those after the last complete step
  FineTuneResult fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options = {});

  /// Returns one vector per text: hidden states pooled over its tokens, passed through the checkpoint's Dense if it has
  /// one, and scaled to length 1 if modules.json has Normalize (Reimers & Gurevych 2019). Texts are sorted by length and
  /// processed in batches.
  ///
  /// @param texts    UTF-8
  /// @param options  maximum length, pooling, normalize, prompt, batch size
  /// @return (N,E)
  /// @throws CONFIG if an option is outside its range
  /// @throws ARGUMENT, OUT_OF_RANGE, UNSUPPORTED, FORMAT, MEMORY as tokenize() and forward()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.embed({"good", "bad"}).shape(0);  // 2
  /// @endcode
  template <std::size_t N = 2>
  TensorOf<N> embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const {
    auto all = detail::empty<N>(check_embed(static_cast<std::int64_t>(texts.size()), options));
    embed(texts, options, all.data());
    return all;
  }
  /// Checks the options of embed() and returns the result's shape, for callers that allocate the result and pass its pointer to embed().
  Shape check_embed(std::int64_t count, const EmbedOptions& options) const;
  void embed(const std::vector<std::string>& texts, const EmbedOptions& options, float* y) const;
  /// Returns the labels of each text in descending order of score, as transformers' TextClassificationPipeline. The
  /// scores are the softmax of the logits; their sigmoid if problem_type is multi_label_classification or there is one
  /// label; the logits themselves for a regression. If the files of a cross-encoder specify another function
  /// (activation_fn), it is used for pairs, as in sentence-transformers' CrossEncoder.predict (Identity returns logits),
  /// and for single texts if there is one label.
  ///
  /// @param texts    UTF-8
  /// @param options  maximum length, batch size, top_k
  /// @throws UNSUPPORTED without a head
  /// @throws ARGUMENT, OUT_OF_RANGE, CONFIG, MEMORY as embed()
  std::vector<std::vector<LabelScore>> classify(const std::vector<std::string>& texts, const ClassifyOptions& options = {}) const;
  /// Classifies pairs of texts. Options and errors as classify().
  std::vector<std::vector<LabelScore>> classify_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                      const ClassifyOptions& options = {}) const;

  /// Finds the entities of each text with their positions, as transformers' TokenClassificationPipeline.
  ///
  /// @param texts    UTF-8
  /// @param options  aggregation, stride, maximum length, batch size
  /// @throws UNSUPPORTED if the model has another kind of head
  /// @throws CONFIG if stride leaves no room, or is given with Aggregation::none
  /// @throws ARGUMENT, OUT_OF_RANGE, MEMORY as embed()
  std::vector<std::vector<Entity>> classify_tokens(const std::vector<std::string>& texts, const ClassifyTokensOptions& options = {}) const;
  /// Predicts the tokens for each mask (mask_token()) of a text, as transformers' FillMaskPipeline.
  ///
  /// @param text     UTF-8 with one or more masks
  /// @param options  top_k, targets, batch size
  /// @return a list for each mask, the most likely token first
  /// @throws ARGUMENT if the text has no mask, or a target begins with no token of the vocabulary
  /// @throws OUT_OF_RANGE if the text is too long
  /// @throws UNSUPPORTED if the model has another kind of head
  std::vector<std::vector<FilledMask>> fill_mask(const std::string& text, const FillMaskOptions& options = {}) const;
  /// Predicts the tokens for each mask of several texts.
  std::vector<std::vector<std::vector<FilledMask>>> fill_mask_all(const std::vector<std::string>& texts, const FillMaskOptions& options = {}) const;
  /// Finds the parts of a context that answer a question, the most likely first, as transformers'
  /// QuestionAnsweringPipeline (version 4). Answers are whole words; there may be fewer than top_k.
  ///
  /// @param question  UTF-8
  /// @param context   UTF-8; a long one is split into overlapping windows
  /// @param options   top_k, max_answer_length, stride, allow_empty, maximum length
  /// @throws ARGUMENT if the question or context is empty
  /// @throws OUT_OF_RANGE if the question leaves no room for the context
  /// @throws CONFIG if stride leaves no room
  /// @throws UNSUPPORTED if the model has another kind of head
  std::vector<Answer> answer(const std::string& question, const std::string& context, const AnswerOptions& options = {}) const;
  /// Answers several questions, each with its context.
  std::vector<std::vector<Answer>> answer_all(const std::vector<std::pair<std::string, std::string>>& pairs, const AnswerOptions& options = {}) const;
  /// Sorts documents by descending relevance to a query. The model must be a cross-encoder: a head with one label. Scores
  /// are its logits after the activation in the checkpoint's files, by default a sigmoid (sentence-transformers'
  /// CrossEncoder.rank). The default prompt of config_sentence_transformers.json is prepended to the query.
  ///
  /// @param query      UTF-8
  /// @param documents  UTF-8
  /// @param options    top_k, maximum length, prompt, batch size
  /// @throws UNSUPPORTED if the model has another kind of head
  /// @throws ARGUMENT, OUT_OF_RANGE, CONFIG, MEMORY as embed()
  std::vector<RankedDocument> rank(const std::string& query, const std::vector<std::string>& documents, const RankOptions& options = {}) const;
  /// Continues a text by the tokens that the model predicts, one after the other, as transformers' generate(). The keys and values of earlier tokens
  /// are kept, so that each step computes one token. Greedy by default; with `do_sample` the tokens depend only on the seed and the logits.
  ///
  /// @param prompt   UTF-8
  /// @param options  number of tokens, sampling, stop strings
  /// @throws UNSUPPORTED if the model has another kind of head
  /// @throws OUT_OF_RANGE if the prompt has more tokens than the model has positions, or a logit is NaN
  /// @throws ARGUMENT if the prompt has no token
  /// @throws CONFIG if an option is outside its range
  /// @throws MEMORY if the call would exceed the memory limit
  GeneratedText generate(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// Returns the tokens that most likely follow a text, the likeliest first. Throws as generate().
  std::vector<NextToken> next_token(const std::string& text, std::int64_t top_k = 5) const;
  /// Returns how well the model predicts each token of a text from the tokens before it. Throws as generate().
  ScoredText score_tokens(const std::string& text) const;
  /// Creates memory for keys and values that forward() fills and continues from (TextForwardOptions::cache). It belongs to the current weights.
  ///
  /// @throws UNSUPPORTED unless the model is causal
  /// @throws OUT_OF_RANGE if max_length exceeds the positions of the model
  /// @throws MEMORY if it exceeds the memory limit
  KeyValueCache create_cache(const CacheOptions& options = {}) const;
  /// Returns the text of token ids, as Tokenizer::decode().
  std::string decode(const std::vector<std::int64_t>& ids, bool skip_special_tokens = false) const;

  /// Applies the head of a language model or of a fill-mask model to hidden states: y = x Wᵀ, for fill-mask after its dense layer and norm. Hidden
  /// states before the last one of a decoder lack its final norm (lens::logit_lens()).
  ///
  /// @param hidden_states  (..,E)
  /// @return logits (..,V)
  /// @throws UNSUPPORTED if the head does not predict tokens
  /// @throws SHAPE if the last dimension is not E
  /// @throws MEMORY if the logits exceed the memory limit
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");
  /// auto output = model.forward(model.tokenize({"The old man"}));
  /// std::cout << (model.unembed(output.last_hidden_state) == xt::xtensor<float, 3>(*output.logits));  // 1
  /// @endcode
  template <TensorLike X>
  auto unembed(const X& hidden_states) const {
    const detail::Input view(hidden_states, "unembed", "hidden_states");
    auto logits = detail::empty<kRankOf<X>>(check_unembed(view));
    run_unembed(view, logits.data());
    return logits;
  }
  /// For callers that own the memory: check_unembed() validates and returns the shape of the result, run_unembed() computes.
  Shape check_unembed(const TensorView& hidden_states) const;
  void run_unembed(const TensorView& hidden_states, float* logits) const;

  /// Returns the shapes of all weights that the model uses, by their names in the checkpoint. Unused tensors (position_ids, a pooler without a head)
  /// are not included.
  std::map<std::string, Shape> parameter_shapes() const;
  /// Copies all weights out as float32, by the names of parameter_shapes().
  template <class Of = TextModel>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : parameter_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// Returns one parameter as float32.
  ///
  /// @throws OUT_OF_RANGE if there is no parameter of that name
  template <std::size_t N = kAnyRank>
  TensorOf<N> get_parameter(const std::string& name) const {
    auto values = detail::empty<N>(parameter_shape(name));
    save_state({{name, values.data()}});
    return values;
  }
  /// Copies weights in. word_embeddings() sees the change at once.
  ///
  /// @param state   tensors by the names of state_dict()
  /// @param strict  true: exactly the model's parameters must be given; false: parameters that are not given keep their values
  /// @throws MISMATCH with all missing, unexpected and mis-shaped names; the model is unchanged then
  template <class Of = TextModel, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// Copies all weights to the memory in `target`, row-major, as Module::save_state().
  void save_state(const StateTarget& target) const;
  /// Copies weights in, as load_state_dict(). In an int8 model each row is rounded with its own scale, as when a file is loaded. Throws FORMAT if
  /// such a row has NaN or infinity.
  void load_state(const StateView& state, bool strict = true);

  /// Returns the word embeddings, which offer nearest(), similarity() and analogy(). Valid as long as the model.
  const Embedding& word_embeddings() const;
  /// Returns the id of a token, or none if the vocabulary does not have it.
  std::optional<std::int64_t> token_to_id(const std::string& token) const;
  /// Returns the token of an id, or none if the vocabulary does not have it.
  std::optional<std::string> id_to_token(std::int64_t id) const;
  /// Returns the token that fill_mask() replaces: [MASK] or <mask>. Throws UNSUPPORTED for a tokenizer that the caller supplied.
  std::optional<std::string> mask_token() const;

  /// Returns the task of the checkpoint's head.
  Task task() const;
  /// Returns messages about content of the files that the model does not use, such as tensors of another head. transformers warns about it.
  const std::vector<std::string>& notes() const;
  /// Returns the label names of a text or token classification head, otherwise an empty list.
  const std::vector<std::string>& labels() const;
  /// Returns the default of max_length: longer texts are truncated to that many ids.
  std::int64_t max_length() const;
  /// Returns the number type of the linear layers' weights and usually of the word embeddings.
  Weights weights() const;

 private:
  friend class detail::LensModel;
  friend std::map<std::string, std::vector<std::uint8_t>> detail::files_of(const TextModel& model);
  struct Parts;
  struct Windows;
  explicit TextModel(std::unique_ptr<Parts> parts);

  const EncoderModel& encoder() const;
  EncoderModel& encoder();
  /// Replaces the label's name in the target by its index.
  GradientOptions numbered(const GradientOptions& options) const;
  EncoderTraceOptions trace_of(std::int64_t layer, Trace names) const;
  Shape parameter_shape(const std::string& name) const;

  EncodedTexts encode(const std::vector<std::string>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const;
  EncodedTexts encode(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                      const TokenizeOptions& options) const;
  EncodedTexts encode(const std::vector<Words>& texts, const TokenizeOptions& options) const;
  EncodedTexts encode(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options) const;
  /// Tokenizes the text that a language model continues. Throws UNSUPPORTED for another task.
  std::vector<std::int64_t> prompt_ids(std::string_view op, const std::string& text, bool add_special_tokens) const;
  template <class Tokenize>
  EncodedTexts encode_all(const TokenizeOptions& options, Tokenize tokenize) const;
  template <class TextAt, class Run>
  void run_texts(std::size_t count, TextAt text_at, const TokenizeOptions& options, std::int64_t batch_size,
                 const std::function<void(std::int64_t, std::int64_t)>& on_progress, std::vector<bool>* truncated, Run run) const;
  template <class Text>
  std::vector<std::vector<LabelScore>> classify_all(const std::vector<Text>& texts, const ClassifyOptions& options) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace attn
