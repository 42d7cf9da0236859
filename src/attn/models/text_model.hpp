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

/// A BERT-family text model from the files that its authors publish: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec-text, MPNet,
/// ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2 and GTE, with or without a head (transformers' AutoModel,
/// AutoModelForTokenClassification and so on; sentence-transformers' SentenceTransformer).
class TextModel {
 public:
  /// A folder with config.json and model.safetensors; where they are there tokenizer.json, tokenizer_config.json (if it has no added_tokens_decoder
  /// special_tokens_map.json and added_tokens.json as well), modules.json and what that
  /// names: 1_Pooling/config.json, 2_Dense, and beside config.json sentence_bert_config.json; and then config_sentence_transformers.json. A file
  /// that is there and empty, or a device or pipe, is FORMAT. Floats of any kind in the file are float32 in memory. int8 is read
  /// as the package compressed-tensors writes it: int-quantized, by row, activations asymmetric, by token and dynamic; other quantized files are
  /// UNSUPPORTED by name.
  /// Tensors that the model has no use for are left out, and notes() lists them.
  /// Throws FORMAT, CONFIG, MISMATCH (all missing, unexpected and mis-shaped tensors at once), MEMORY; UNSUPPORTED for other models. A
  /// tokenizer that Tokenizer does not read, or none, and none among the options, is UNSUPPORTED only when texts are to be tokenized: forward() takes
  /// token ids.
  static TextModel load(const FilePath& folder, const TextModelOptions& options = {});
  /// Writes the model as transformers reads it: the weights that it works with, as they are now, under the names that its file has, config.json,
  /// and the other files that were read. Poolers and heads that it leaves out are not written. load() reads it back; what int8 gives has the same
  /// bits then. A missing folder is made. Files of these names are replaced, all of them or none, and links to files by files.
  /// Throws OUT_OF_RANGE for a number that float16 has not, FORMAT for NaN or infinity that would become int8, both with the tensor's name and
  /// before anything is written; ARGUMENT where the folder cannot be written to.
  void save_pretrained(const FilePath& folder, const SaveOptions& options = {}) const;

  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;
  ~TextModel();

  /// max_length defaults to that of sentence_bert_config.json, else of tokenizer_config.json, else to the model's positions, which it
  /// must not exceed: OUT_OF_RANGE. Throws as Tokenizer too.
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, 0, texts.size(), options));
  }
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(pairs, 0, pairs.size(), options));
  }

  /// Of what is words already, as Tokenizer's encode_words. Throws UNSUPPORTED for the caller's tokenizer.
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_words(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, options));
  }
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_word_pairs(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(pairs, options));
  }

  /// Of an Encoding only input_ids have to be there: without attention_mask everything is attended to, without token_type_ids they are 0.
  /// Throws SHAPE, MASK, OUT_OF_RANGE for an id without a row, more ids than positions or a layer that is not there, MEMORY.
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
  /// Everything inside one layer, counted from 0.
  template <std::size_t N>
  auto trace_layer(const EncodingTensors<N>& inputs, std::int64_t layer, Trace names = Trace::all()) const {
    const detail::TextForward forward("trace_layer", encoder(), detail::TokenIds(inputs), {}, trace_of(layer, names));
    auto result = detail::run_encoder_plan<N + 1>(forward.encoder(), [&](const detail::EncoderBuffers& buffers) { forward.run(buffers, nullptr); });
    return std::move((*result.trace)[layer]);
  }

  /// The gradient of one number with respect to what the options name (torch.autograd.grad of it, without dropout). Throws UNSUPPORTED for int8
  /// weights, which loading with Weights::float32 makes float32, and for a label without a head; ARGUMENT where the target is neither a label nor
  /// a component, or both, or nothing is asked for; OUT_OF_RANGE for a label, component or row that is not there; and as forward.
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
  /// A score for each token of a text. f is a logit before softmax, without a head a number of the pooled vector.
  /// integrated_gradients: Σ_e (x - b) · ∫₀¹ ∂f/∂x (b + a (x - b)) da, x the word embeddings, b those of [PAD] but at special tokens, by
  /// Gauss-Legendre's steps (Sundararajan, Taly & Yan 2017). gradient_x_input: Σ_e x · ∂f/∂x. attention_rollout: the pooled rows of the product of
  /// 0.5 A + 0.5 I over the layers, A the mean over the heads (Abnar & Zuidema 2020). attention_gradient: those of the product of I + Ā, Ā the mean
  /// over the heads of the positive part of A · ∂f/∂A (Chefer, Gur & Wolf 2021). leave_one_out: f of the text less f of the text without the token;
  /// 0 for special tokens. The first position is what is pooled where the head takes that, the mean of all where it takes the mean.
  /// A long text is cut, as by classify. Throws UNSUPPORTED for gradients of int8 weights and without a tokenizer, ARGUMENT without a head where no
  /// target is given, OUT_OF_RANGE for one that is not there, CONFIG for steps, MEMORY.
  TextAttribution attribute(const std::string& text, const AttributeOptions& options = {}) const;

  /// Trains the model on examples, as transformers' Trainer does for sequence classification: AdamW with β 0.9 and 0.999, gradients cut to norm
  /// 1, the learning rate falling linearly to 0, cross entropy of softmax; of one label binary cross entropy, of a regression the squared error.
  /// Each step has dropout in transformers' places, as likely as config.json says (hidden_dropout_prob and so on, transformers' default where it
  /// says nothing), what is held out is judged without. With layers 0 each text meets the encoder once, without dropout; the head's own is in each
  /// step. Weights, order and result follow from the seed, and have the same bits for any number of threads. save_pretrained() writes what
  /// transformers reads.
  /// Throws, before anything has changed, UNSUPPORTED for int8 weights, without a tokenizer and for heads with several answers for a text,
  /// ARGUMENT without examples, OUT_OF_RANGE for labels and layers that are not there, CONFIG, MEMORY; OUT_OF_RANGE with the step's number where
  /// a loss or gradient is no finite number. Then, and where on_progress throws, weights are those after the last whole step.
  FineTuneResult fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options = {});

  /// (N,E): hidden states pooled over what is no padding, through the checkpoint's Dense where it has one, and scaled to length 1 where the
  /// checkpoint says so (Reimers & Gurevych 2019); E is what comes out of that. Texts are sorted into batches by length. Throws as tokenize and
  /// forward, CONFIG.
  template <std::size_t N = 2>
  TensorOf<N> embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const {
    auto all = detail::empty<N>(check_embed(static_cast<std::int64_t>(texts.size()), options));
    embed(texts, options, all.data());
    return all;
  }
  /// The same for who has the memory: the shape, and then the work.
  Shape check_embed(std::int64_t count, const EmbedOptions& options) const;
  void embed(const std::vector<std::string>& texts, const EmbedOptions& options, float* y) const;
  /// Per text all labels by falling score, as transformers' TextClassificationPipeline: softmax of the logits; sigmoid of each where
  /// config.json's problem_type is multi_label_classification or there is one label; the logits themselves where it is regression. If
  /// the files of a cross-encoder name another function (activation_fn), pairs are scored by it, as by sentence-transformers' CrossEncoder.predict
  /// (Identity gives logits), and a text alone if there is one label. Throws UNSUPPORTED without a head.
  std::vector<std::vector<LabelScore>> classify(const std::vector<std::string>& texts, const ClassifyOptions& options = {}) const;
  std::vector<std::vector<LabelScore>> classify_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                      const ClassifyOptions& options = {}) const;

  /// What each text names, with its places there, as transformers' TokenClassificationPipeline. Throws UNSUPPORTED for a head that is for something
  /// else, CONFIG for a stride that leaves no room, or with Aggregation::none, and as embed.
  std::vector<std::vector<Entity>> classify_tokens(const std::vector<std::string>& texts, const ClassifyTokensOptions& options = {}) const;
  /// For each mask of the text (mask_token()) its most likely tokens, as transformers' FillMaskPipeline. Throws ARGUMENT for a text without a mask
  /// and for a target that begins with nothing that the vocabulary has, OUT_OF_RANGE for a text that is too long, UNSUPPORTED for a head that is for
  /// something else.
  std::vector<std::vector<FilledMask>> fill_mask(const std::string& text, const FillMaskOptions& options = {}) const;
  /// The same of several texts.
  std::vector<std::vector<std::vector<FilledMask>>> fill_mask_all(const std::vector<std::string>& texts, const FillMaskOptions& options = {}) const;
  /// Parts of the context that answer the question, the most likely first, as transformers' QuestionAnsweringPipeline (version 4): of whole words.
  /// There may be fewer than are asked for. Throws ARGUMENT for an empty question or context, OUT_OF_RANGE for a question that leaves no room,
  /// CONFIG for a stride that leaves none, UNSUPPORTED for a head that is for something else.
  std::vector<Answer> answer(const std::string& question, const std::string& context, const AnswerOptions& options = {}) const;
  /// The same of several questions, each with its context.
  std::vector<std::vector<Answer>> answer_all(const std::vector<std::pair<std::string, std::string>>& pairs, const AnswerOptions& options = {}) const;
  /// Documents by falling relevance to the query, by a cross-encoder: a head with one label, through the activation that its files name, else a
  /// sigmoid (sentence-transformers' CrossEncoder.rank). The default prompt of config_sentence_transformers.json goes before the query. Throws
  /// UNSUPPORTED for another head.
  std::vector<RankedDocument> rank(const std::string& query, const std::vector<std::string>& documents, const RankOptions& options = {}) const;
  /// The text of tokens, as Tokenizer's decode.
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
  /// One of them. Throws OUT_OF_RANGE for a name that is not there.
  template <std::size_t N = kAnyRank>
  TensorOf<N> get_parameter(const std::string& name) const {
    auto values = detail::empty<N>(parameter_shape(name));
    save_state({{name, values.data()}});
    return values;
  }
  /// strict: every one must be there and nothing else; otherwise those that are left out keep their numbers. Throws one MISMATCH that
  /// lists all missing, unexpected and mis-shaped names; nothing is changed then.
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
