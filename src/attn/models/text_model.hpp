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
#include "attn/models/task.hpp"
#include "attn/models/text_tasks.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

class EncoderModel;

/// What one layer shall work with instead of what it would have computed, to see what follows from it (activation patching: Vig et al. 2020).
/// Any numbers will do.
struct LayerPatch {
  std::int64_t layer = 0;                                 ///< counted from 0
  std::optional<TensorCopy> hidden_state = std::nullopt;  ///< (B,L,E), its input
  std::optional<TensorCopy> merged = std::nullopt;        ///< (B,L,E), the heads' results side by side, before W_O
};

struct TextForwardOptions {
  bool output_attentions = false;     ///< return the weights of every layer
  bool output_hidden_states = false;  ///< return the input of every layer, and the output
  bool output_logits = true;          ///< those of the head; of fill-mask they are many, and take as long as some layers
  /// Of every layer, as AttentionOptions, beside what the padding and the model itself mask. A query that they leave nothing attends to
  /// every key alike, as in transformers.
  std::optional<Mask> mask = std::nullopt;
  bool is_causal = false;  ///< no token attends to later ones, in every layer
  /// (layers,H), what each head's result is multiplied by before W_O, after a patch; 0 switches it off (Michel et al. 2019). Attentions and
  /// the trace `context` are those of before, `merged` is what goes into W_O.
  std::optional<TensorCopy> head_mask = std::nullopt;
  std::optional<LayerPatch> patch = std::nullopt;
  std::optional<EncoderTraceOptions> trace = std::nullopt;
};

/// N = 2.
template <std::size_t N>
struct TextModelTensors {
  TensorOf<N + 1> last_hidden_state;  ///< (B,L,E)
  /// Where the checkpoint has a head: (B,C); of token-classification and fill-mask (B,L,C), C the labels or the vocabulary; of
  /// question-answering (B,L,2), the start and the end of an answer; of multiple-choice (B,1), a row for each choice.
  std::optional<TensorOf<kAnyBeside<N>>> logits;
  std::optional<std::vector<TensorOf<N + 2>>> attentions;     ///< by layer (B,H,L,L), when asked for
  std::optional<std::vector<TensorOf<N + 1>>> hidden_states;  ///< layers + 1 of (B,L,E), the last equals last_hidden_state; when asked for
  decltype(EncoderResult<N + 1>::trace) trace;                ///< AttentionTrace by layer, when asked for
};
using TextModelOutput = TextModelTensors<2>;

/// The one number that gradients are of.
struct GradientTarget {
  std::int64_t row = 0;  ///< the sequence
  /// Its logit before softmax, by number or name (of fill-mask a token, of question-answering "start" or "end"); or
  std::optional<std::variant<std::int64_t, std::string>> label = std::nullopt;
  std::optional<std::int64_t> component = std::nullopt;  ///< a number of its pooled vector, before Dense and scaling
  std::optional<std::int64_t> token = std::nullopt;      ///< whose logit it is, where the head has logits of each token
};

struct GradientOptions {
  GradientTarget target;
  bool embeddings = false, attentions = false, parameters = false;  ///< what gradients are with respect to
};

/// N = 2.
template <std::size_t N>
struct TextModelGradients {
  float value = 0;                                         ///< the target itself
  std::optional<TensorOf<N + 1>> embeddings;               ///< (B,L,E), of the word embedding at each place; when asked for, as the next
  std::optional<std::vector<TensorOf<N + 2>>> attentions;  ///< by layer (B,H,L,L); 0 where a query does not see a key
  std::optional<typename StateDictType<TextModelGradients<N>>::type> parameters;  ///< by the names of state_dict()
};

struct AttributeOptions {
  AttributionMethod method = AttributionMethod::integrated_gradients;
  /// A label by number or name, or without a head the number of a component of the pooled vector. Default the answer, the label with the largest
  /// logit; without a head there is none.
  std::optional<std::variant<std::int64_t, std::string>> target = std::nullopt;
  std::int64_t steps = 50;  ///< of integrated_gradients, 1 to 10 000
};

/// What each token of a text has to do with an answer.
struct TextAttribution {
  std::vector<std::string> tokens;  ///< special ones included
  TokenOffsets offsets;             ///< as Encoding has them
  std::vector<float> scores;        ///< by token
  /// |Σ scores - (f(text) - f(baseline))| / |f(text) - f(baseline)|, of integrated_gradients.
  std::optional<double> delta = std::nullopt;
};

/// A text, or a pair of them, and what the model shall say of it.
struct FineTuneExample {
  std::string text;
  /// By number or name; for one label 0, 1 or what lies between, for a regression any number.
  std::variant<std::int64_t, double, std::string> label;
  std::optional<std::string> text_pair = std::nullopt;
};

/// After each step.
struct FineTuneProgress {
  std::int64_t epoch = 0, step = 0, steps = 0;                                               ///< counted from 1; steps of the whole run
  double loss = 0;                                                                           ///< of the step's batch, before it
  std::optional<double> validation_loss = std::nullopt, validation_accuracy = std::nullopt;  ///< after an epoch; of a regression no accuracy
};

struct FineTuneOptions {
  std::int64_t epochs = 3, batch_size = 16;
  std::optional<double> learning_rate = std::nullopt;  ///< at the start, above 0; default 5e-5, of the head alone 1e-3
  double weight_decay = 0.01;                          ///< of all but biases and norms
  std::optional<std::int64_t> layers = std::nullopt;   ///< that are trained: the last so many and the head, 0 the head alone; default everything
  /// Of the head. Others than the model has, or for a model without a head: a new one is drawn. Default the model's own, else those of the
  /// examples: names in their order, or LABEL_0 and so on.
  std::vector<std::string> labels = {};
  std::uint64_t seed = 0;  ///< of the order of the examples, of dropout, and of a new head
  double validation = 0;   ///< share of the examples, from 0 up to, not including, 1, that are held out
  /// False ends the run after this step.
  std::function<bool(const FineTuneProgress&)> on_progress = nullptr;
};

struct FineTuneResult {
  double loss = 0;  ///< mean over the steps of the last epoch
  std::optional<double> validation_accuracy = std::nullopt;
};

namespace detail {

struct ModelPlan;

/// Token ids of a caller: (B,L) each, row-major; only the first have to be there.
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

/// A forward of a TextModel: checked, with the shapes of what it gives, and then run.
class TextForward {
 public:
  TextForward(std::string_view op, const EncoderModel& model, const TokenIds& inputs, const TextForwardOptions& options,
              std::optional<EncoderTraceOptions> trace);
  ~TextForward();
  TextForward(const TextForward&) = delete;
  TextForward& operator=(const TextForward&) = delete;

  const EncoderPlan& encoder() const;
  const Shape& logits() const;  ///< of rank 0 without a head
  void run(const EncoderBuffers& buffers, float* logits) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace detail

struct EmbedOptions {
  std::optional<std::int64_t> max_length = std::nullopt;  ///< as TokenizeOptions
  bool truncation = true;
  std::optional<Pooling> pooling = std::nullopt;  ///< any but none; default what 1_Pooling/config.json says (one or several), else mean
  std::optional<bool> normalize = std::nullopt;   ///< to length 1; default what modules.json says, else false
  std::int64_t batch_size = 32;                   ///< any gives the same bits
  /// Put before each text; default that of prompt_name, else the one that config_sentence_transformers.json has as default_prompt_name, else none.
  std::optional<std::string> prompt = std::nullopt;
  std::optional<std::string> prompt_name = std::nullopt;  ///< one of config_sentence_transformers.json
  /// After each batch: how many texts are done, of how many. What it throws ends the call.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
  bool add_special_tokens = true;                      ///< as TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;  ///< as TokenizeOptions
  std::vector<bool>* truncated = nullptr;              ///< if given, receives for each text whether it was truncated
};

struct ClassifyOptions {
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;
  std::int64_t batch_size = 32;
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as EmbedOptions
  bool add_special_tokens = true;                                                    ///< as TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;                                ///< as TokenizeOptions
  std::optional<std::int64_t> top_k = std::nullopt;                                  ///< labels of each text; default all
  std::vector<bool>* truncated = nullptr;                                            ///< as EmbedOptions
};

struct LabelScore {
  std::string label;
  float score = 0;
  std::int64_t index = 0;  ///< of the label in labels(), which may have equal ones
};

/// How weights of linear maps are kept and multiplied.
enum class Weights : std::uint8_t {
  float32,
  int8,  ///< 8 bits with a scale for each row
};

struct TextModelOptions {
  std::optional<Weights> weights = std::nullopt;  ///< default as the files have them: int8 where they are int8, else float32
  /// Makes the tokenizer where tokenizer.json has a part that Tokenizer does not read, of what Tokenizer::parse is given.
  std::function<std::shared_ptr<const TextTokenizer>(std::span<const std::uint8_t> tokenizer_json,
                                                     std::optional<std::span<const std::uint8_t>> tokenizer_config, std::string_view default_class)>
      tokenizer = nullptr;
};

/// How weights are written to files.
enum class FileWeights : std::uint8_t {
  float32,
  float16,  ///< to the nearest, of two the even one
  int8,     ///< weights of linear maps and the word table, as the package compressed-tensors has them; all else float32
};

struct SaveOptions {
  std::optional<FileWeights> weights = std::nullopt;  ///< default as the model has them
};

namespace detail {

/// gradients() of a model, whose forward is done. A label is a number by now.
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

/// A text model from the files of its authors: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec-text,
/// MPNet, ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2 and GTE, with or without a head
/// (transformers' AutoModel, AutoModelForTokenClassification and so on; sentence-transformers' SentenceTransformer).
/// @code
/// auto model = attn::TextModel::load("testdata/models/sentiment");
/// std::cout << model.classify({"A wonderful film."}).at(0).at(0).label;  // positive
/// @endcode
class TextModel {
 public:
  /// Loads a folder with config.json and model.safetensors. If they are present it also reads tokenizer.json,
  /// tokenizer_config.json (without its added_tokens_decoder also special_tokens_map.json and added_tokens.json),
  /// sentence_bert_config.json, modules.json and the folders that it names (1_Pooling, 2_Dense), and
  /// config_sentence_transformers.json. Floats of any width become float32. int8 is read as compressed-tensors writes
  /// it: int-quantized, by row, activations asymmetric, by token and dynamic. Tensors that the model does not use are
  /// skipped and listed in notes(). Without a readable tokenizer the model still takes token ids.
  ///
  /// @param folder   a string or std::filesystem::path
  /// @param options  int8 or float32 weights, and a tokenizer of your own
  /// @throws FORMAT if a file is damaged, empty, or no regular file
  /// @throws CONFIG if config.json contradicts itself
  /// @throws MISMATCH with all missing and mis-shaped tensors
  /// @throws UNSUPPORTED for other models and quantisations; for texts, if there is no tokenizer that attn reads
  /// @throws MEMORY if the model exceeds the memory limit
  static TextModel load(const FilePath& folder, const TextModelOptions& options = {});
  /// Writes the model as transformers reads it: current weights under the names of the file, config.json, and the
  /// other files that were read. load() reads it back; int8 gives the same bits. Poolers and heads that attn does not
  /// use are not written. A missing folder is created. Files are replaced all together or not at all; links are
  /// replaced by files.
  ///
  /// @param folder   a string or std::filesystem::path
  /// @param options  float32, float16 or int8; default as the model has them
  /// @throws OUT_OF_RANGE if float16 lacks a number, with the tensor's name
  /// @throws FORMAT if NaN or infinity would become int8, with the tensor's name
  /// @throws ARGUMENT if the folder cannot be written; nothing has been written after an error
  void save_pretrained(const FilePath& folder, const SaveOptions& options = {}) const;

  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;
  ~TextModel();

  /// Tokenizes texts, as Tokenizer::encode. max_length defaults to that of sentence_bert_config.json, else of
  /// tokenizer_config.json, else to the number of positions.
  ///
  /// @throws OUT_OF_RANGE if max_length exceeds the positions of the model
  /// @throws ARGUMENT, UNSUPPORTED, FORMAT, MEMORY as Tokenizer::encode
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, 0, texts.size(), options));
  }
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
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_word_pairs(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(pairs, options));
  }

  /// Runs the model on token ids. Of the encoding only input_ids are required: without attention_mask every token is
  /// visible, without token_type_ids they are 0.
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
  /// @param options  the target, and what gradients are with respect to
  /// @throws UNSUPPORTED for int8 weights, and for a label without a head. Load with Weights::float32
  /// @throws ARGUMENT if the target is neither a label nor a component, or both, or nothing is asked for
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
  /// Computes a score for each token of a text: how much it contributes to f, a logit before softmax, or without a
  /// head a number of the pooled vector. Special tokens get 0 from leave_one_out. A long text is truncated as by
  /// classify(). integrated_gradients: Σ_e (x - b) · ∫₀¹ ∂f/∂x (b + a (x - b)) da, x the word embeddings, b those of
  /// [PAD] except at special tokens, by Gauss-Legendre quadrature (Sundararajan, Taly & Yan 2017). gradient_x_input:
  /// Σ_e x · ∂f/∂x. attention_rollout: the pooled rows of the product of 0.5 A + 0.5 I over the layers, A the mean
  /// over the heads (Abnar & Zuidema 2020). attention_gradient: those of the product of I + Ā, Ā the mean over the
  /// heads of the positive part of A · ∂f/∂A (Chefer, Gur & Wolf 2021). leave_one_out: f of the text minus f of the
  /// text without the token.
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
  /// 0.999, gradients clipped to norm 1, a learning rate that falls linearly to 0; cross entropy for several labels,
  /// binary cross entropy for one, the squared error for a regression. Dropout is in transformers' places with the
  /// probabilities of config.json. Held-out examples are evaluated without dropout. With layers 0 each text passes
  /// the encoder once, without dropout. Weights, order and result depend only on the seed, for any number of threads.
  ///
  /// @param examples  texts or pairs with labels
  /// @param options   epochs, batch size, learning rate, trained layers, labels, validation share
  /// @return mean loss of the last epoch, and the validation accuracy
  /// @throws UNSUPPORTED for int8 weights, without a tokenizer, and for heads with several answers per text
  /// @throws ARGUMENT if there are no examples
  /// @throws OUT_OF_RANGE if labels or layers do not exist; with the step's number if a loss or gradient is not
  /// finite
  /// @throws CONFIG if an option is outside its range
  /// @throws MEMORY if a step would exceed the memory limit. Weights are those after the last complete step
  FineTuneResult fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options = {});

  /// Returns a vector per text: hidden states pooled over its tokens, passed through the checkpoint's Dense if it has
  /// one, and scaled to length 1 if the checkpoint asks for it (Reimers & Gurevych 2019). Texts are sorted into
  /// batches by length.
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
  /// The same for who has the memory: the shape, and then the work.
  Shape check_embed(std::int64_t count, const EmbedOptions& options) const;
  void embed(const std::vector<std::string>& texts, const EmbedOptions& options, float* y) const;
  /// Returns the labels of each text by falling score, as transformers' TextClassificationPipeline: softmax of the
  /// logits; sigmoid of each if problem_type is multi_label_classification or there is one label; the logits
  /// themselves for a regression. If the files of a cross-encoder name another function (activation_fn), pairs are
  /// scored by it, as by sentence-transformers' CrossEncoder.predict (Identity gives logits), and a single text if
  /// there is one label.
  ///
  /// @param texts    UTF-8
  /// @param options  maximum length, batch size, top_k
  /// @throws UNSUPPORTED without a head
  /// @throws ARGUMENT, OUT_OF_RANGE, CONFIG, MEMORY as embed()
  std::vector<std::vector<LabelScore>> classify(const std::vector<std::string>& texts, const ClassifyOptions& options = {}) const;
  std::vector<std::vector<LabelScore>> classify_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                      const ClassifyOptions& options = {}) const;

  /// Finds the entities of each text with their positions, as transformers' TokenClassificationPipeline.
  ///
  /// @param texts    UTF-8
  /// @param options  aggregation, stride, maximum length, batch size
  /// @throws UNSUPPORTED if the head is for something else
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
  /// @throws UNSUPPORTED if the head is for something else
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
  /// @throws UNSUPPORTED if the head is for something else
  std::vector<Answer> answer(const std::string& question, const std::string& context, const AnswerOptions& options = {}) const;
  /// Answers several questions, each with its context.
  std::vector<std::vector<Answer>> answer_all(const std::vector<std::pair<std::string, std::string>>& pairs, const AnswerOptions& options = {}) const;
  /// Sorts documents by falling relevance to a query with a cross-encoder: a head with one label, through the
  /// activation that its files name, or else a sigmoid (sentence-transformers' CrossEncoder.rank). The default prompt
  /// of config_sentence_transformers.json precedes the query.
  ///
  /// @param query      UTF-8
  /// @param documents  UTF-8
  /// @param options    top_k, maximum length, prompt, batch size
  /// @throws UNSUPPORTED for another head
  /// @throws ARGUMENT, OUT_OF_RANGE, CONFIG, MEMORY as embed()
  std::vector<RankedDocument> rank(const std::string& query, const std::vector<std::string>& documents, const RankOptions& options = {}) const;
  /// Returns the text of tokens, as Tokenizer::decode().
  std::string decode(const std::vector<std::int64_t>& ids, bool skip_special_tokens = false) const;

  /// The weights that the model works with, float32, by the names that the file has for them; what it has beside them (position_ids, a
  /// pooler without a head) is not among them. state_dict copies out, load_state_dict copies in, and word_embeddings() sees it at once.
  std::map<std::string, Shape> parameter_shapes() const;
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
  /// Copies weights in.
  ///
  /// @param state   tensors by the names of state_dict()
  /// @param strict  true: every parameter must be given and nothing else; false: missing ones keep their numbers
  /// @throws MISMATCH with all missing, unexpected and mis-shaped names; nothing has changed then
  template <class Of = TextModel, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// The same of places in memory, as Module has them. Numbers that become int8 are rounded to it, each row by a scale of its own, as when they
  /// are loaded from a file; NaN and infinity among them are FORMAT.
  void save_state(const StateTarget& target) const;
  void load_state(const StateView& state, bool strict = true);

  /// The word table: nearest, similarity, analogy. It goes with the model.
  const Embedding& word_embeddings() const;
  std::optional<std::int64_t> token_to_id(const std::string& token) const;
  std::optional<std::string> id_to_token(std::int64_t id) const;
  /// What stands for a word that fill_mask shall predict: [MASK] or <mask>. Throws UNSUPPORTED for a tokenizer that attn does not read itself.
  std::optional<std::string> mask_token() const;

  /// What the checkpoint's head is for.
  Task task() const;
  /// What the files have that the model does not use, in words: tensors of another head, say. transformers warns of it.
  const std::vector<std::string>& notes() const;
  /// Of a classification, of texts or of tokens; else empty.
  const std::vector<std::string>& labels() const;
  /// Ids that a text is cut to unless the call says otherwise.
  std::int64_t max_length() const;
  /// How weights of linear maps, and mostly the word table, are kept and multiplied.
  Weights weights() const;

 private:
  struct Parts;
  struct Windows;
  explicit TextModel(std::unique_ptr<Parts> parts);

  const EncoderModel& encoder() const;
  EncoderModel& encoder();
  /// With the label's number.
  GradientOptions numbered(const GradientOptions& options) const;
  EncoderTraceOptions trace_of(std::int64_t layer, Trace names) const;
  Shape parameter_shape(const std::string& name) const;

  EncodedTexts encode(const std::vector<std::string>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const;
  EncodedTexts encode(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                      const TokenizeOptions& options) const;
  EncodedTexts encode(const std::vector<Words>& texts, const TokenizeOptions& options) const;
  EncodedTexts encode(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options) const;
  template <class Tokenize>
  EncodedTexts encode_all(const TokenizeOptions& options, Tokenize tokenize) const;
  template <class Text, class Run>
  void run_texts(const std::vector<Text>& texts, const TokenizeOptions& options, std::int64_t batch_size,
                 const std::function<void(std::int64_t, std::int64_t)>& on_progress, std::vector<bool>* truncated, Run run) const;
  template <class Text>
  std::vector<std::vector<LabelScore>> classify_all(const std::vector<Text>& texts, const ClassifyOptions& options) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace attn
