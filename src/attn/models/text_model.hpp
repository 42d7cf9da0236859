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
#include "attn/layers/embedding_layer.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/models/attribution.hpp"
#include "attn/models/model_gradient.hpp"
#include "attn/models/output_logits.hpp"
#include "attn/models/task.hpp"
#include "attn/models/text_generation.hpp"
#include "attn/models/text_model_options.hpp"
#include "attn/models/text_tasks.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

class EncoderModel;
class TextModel;

namespace detail {

class LensModel;  // models/lens_model.hpp
struct ModelPlan;
class StagedFiles;  // io/files.hpp

/// Files that were read from a folder, by name, except the weights.
using SmallFiles = std::vector<std::pair<std::string, std::vector<std::uint8_t>>>;

/// A tokenizer and the files that it was loaded from. A folder of these files has the same tokenizer.
struct TokenizerWithFiles : Tokenizer {
  SmallFiles files;
};
TokenizerWithFiles load_tokenizer_with_files(const FilePath& folder);

/// Returns one of the small files that a model was loaded from, by its path in the folder or relative to config.json, or
/// null if there is none. Valid as long as the model.
const std::vector<std::uint8_t>* find_small_file(const TextModel& model, const std::string& name);

/// Does the same as TextModel::save_pretrained(), with files that another thread may abandon.
void save_pretrained(const TextModel& model, const FilePath& folder, const SaveOptions& options, StagedFiles& files);

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

/// One forward of a model: the constructor checks the arguments and computes the result's shapes, run() computes the result.
class TextForward {
 public:
  TextForward(std::string_view op, const EncoderModel& model, const TokenIds& inputs, const TextForwardOptions& options,
              std::optional<EncoderTraceOptions> trace);
  /// Of images (B,channels,height,width), which must outlive it.
  TextForward(std::string_view op, const EncoderModel& model, const TensorView& pixels, const TextForwardOptions& options);
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

template <std::size_t N>
TextModelTensors<N> output_of(const TextForward& forward) {
  TextModelTensors<N> output;
  if (forward.logits().rank() > 0) output.logits = empty<kAnyBeside<N>>(forward.logits());
  auto result = run_encoder_plan<N + 1>(
      forward.encoder(), [&](const EncoderBuffers& buffers) { forward.run(buffers, output.logits ? output.logits->data() : nullptr); });
  output.last_hidden_state = std::move(result.output);
  output.attentions = std::move(result.attentions);
  output.hidden_states = std::move(result.hidden_states);
  output.trace = std::move(result.trace);
  return output;
}

}  // namespace detail

/// Loads the tokenizer of a model without its weights: tokenizer.json, and the files that TextModel::load() reads for it.
///
/// @param folder  the model's folder or .gguf file, as for TextModel::load(); config.json may be missing, and its model unknown to attn
/// @throws FORMAT if tokenizer.json is not there, or a file is damaged
/// @throws UNSUPPORTED for a part of the tokenizer that attn does not have
/// @throws MEMORY as Tokenizer::parse
///
/// @code
/// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
/// std::cout << tokenizer.encode({"A warm film."}).tokens.at(0).at(2);  // warm
/// @endcode
Tokenizer load_tokenizer(const FilePath& folder);

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
  /// sentence_bert_config.json, modules.json and the folders that it names (1_Pooling, 2_Dense …), and
  /// config_sentence_transformers.json. Floats of any width become float32. int8 weights must have the format of
  /// compressed-tensors: int-quantized, by row, with dynamic asymmetric activations by token. Tensors that the model
  /// does not use are skipped and listed in notes(). If the tokenizer cannot be read, the model still takes token ids.
  /// @param folder   the folder, or the .gguf file of a language model; a string or std::filesystem::path
  /// @param options  int8 or float32 weights, and a tokenizer of your own
  /// @throws FORMAT if a file is damaged, empty, or not a regular file
  /// @throws CONFIG if config.json contradicts itself
  /// @throws MISMATCH with all missing and mis-shaped tensors
  /// @throws UNSUPPORTED for other models and quantisations; for texts, if attn does not support the tokenizer
  /// @throws MEMORY if the model exceeds the memory limit
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment", {.weights = attn::Weights::int8});
  /// std::cout << name_of(model.task()) << ' ' << model.num_layers();  // text-classification 2
  /// @endcode
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
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const auto folder = std::filesystem::temp_directory_path() / "attn-example-model";
  /// model.save_pretrained(folder, {.weights = attn::FileWeights::int8});
  /// std::cout << (attn::TextModel::load(folder).weights() == attn::Weights::int8);  // 1
  /// std::filesystem::remove_all(folder);
  /// @endcode
  void save_pretrained(const FilePath& folder, const SaveOptions& options = {}) const;

  /// Takes over a model, which must not be used afterwards.
  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;
  ~TextModel();

  /// Tokenizes texts, as Tokenizer::encode. The default of max_length is the value in sentence_bert_config.json, else in
  /// tokenizer_config.json, else the number of positions.
  ///
  /// @param texts    UTF-8
  /// @param options  maximum length, truncation, special tokens, sides
  /// @return input_ids, token_type_ids, attention_mask (B,L); tokens, offsets and more per text
  /// @throws OUT_OF_RANGE if max_length exceeds the positions of the model
  /// @throws ARGUMENT, UNSUPPORTED, FORMAT, MEMORY as Tokenizer::encode
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto encoding = model.tokenize({"A warm film.", "Dull"});
  /// std::cout << encoding.input_ids;  // {{ 2, 43, 1968, 222, 18, 3}, { 2, 6759, 3, 0, 0, 0}}
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, 0, texts.size(), options));
  }
  /// Tokenizes pairs of texts, each pair as one sequence. Throws as tokenize().
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto encoding = model.tokenize_pairs({{"A warm film.", "funny"}});
  /// std::cout << encoding.token_type_ids;  // {{0, 0, 0, 0, 0, 0, 1, 1}}
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(pairs, 0, pairs.size(), options));
  }

  /// Tokenizes texts that are split into words, as Tokenizer::encode_words.
  ///
  /// @param texts    the words of each text
  /// @param options  as for tokenize()
  /// @return as tokenize(), with the index of each token's word in `words`
  /// @throws UNSUPPORTED for a tokenizer of your own
  /// @throws OUT_OF_RANGE, ARGUMENT, FORMAT, MEMORY as tokenize()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto encoding = model.tokenize_words({{"A", "warm", "film."}});
  /// for (const auto& word : encoding.words.at(0)) std::cout << word.value_or(-1) << ' ';  // -1 0 1 2 2 -1
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> tokenize_words(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode(texts, options));
  }
  /// Tokenizes pairs of texts that are split into words. Throws as tokenize_words().
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const attn::Words text{"A", "warm", "film"}, other{"It", "is", "funny"};
  /// auto encoding = model.tokenize_word_pairs({{text, other}});
  /// std::cout << encoding.token_type_ids;  // {{0, 0, 0, 0, 0, 1, 1, 1, 1}}
  /// @endcode
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
  /// @throws UNSUPPORTED if padding is between tokens of a language model that are within one sliding window
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto output = model.forward(model.tokenize({"A warm film."}), {.output_attentions = true});
  /// std::cout << to_string(attn::to_shape(output.last_hidden_state.shape()));  // (1,6,64)
  /// std::cout << to_string(attn::to_shape(output.attentions->at(0).shape()));  // (1,4,6,6)
  /// @endcode
  template <std::size_t N>
  TextModelTensors<N> forward(const EncodingTensors<N>& inputs, const TextForwardOptions& options = {}) const {
    const detail::TextForward forward("forward", encoder(), detail::TokenIds(inputs), options, options.trace);
    return detail::output_of<N>(forward);
  }
  /// Returns every intermediate result of one layer.
  ///
  /// @param inputs  as tokenize() returns them
  /// @param layer   from 0
  /// @param names   default all but weighted_values
  /// @return tensors by name, with the shapes of TraceName
  /// @throws SHAPE, MASK, OUT_OF_RANGE, MEMORY as forward()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto trace = model.trace_layer(model.tokenize({"A warm film."}), 1, {attn::TraceName::scores});
  /// std::cout << to_string(attn::to_shape(trace.at(attn::TraceName::scores).shape()));  // (1,4,6,6)
  /// @endcode
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
  /// @return the value of the target, and the requested gradients
  /// @throws UNSUPPORTED for int8 weights, and for a label without a head. Load with Weights::float32
  /// @throws ARGUMENT unless the target is either a label or a component, or if no gradients are requested
  /// @throws OUT_OF_RANGE if the label, component or row does not exist
  /// @throws SHAPE, MASK, MEMORY as forward()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto result = model.gradients(model.tokenize({"not bad"}), {.target = {.label = "negative"}, .embeddings = true});
  /// std::cout << to_string(attn::to_shape(result.embeddings->shape()));  // (1,4,64)
  /// @endcode
  template <std::size_t N>
  TextModelGradients<N> gradients(const EncodingTensors<N>& inputs, const GradientOptions& options) {
    const detail::ModelGradient gradient = gradient_of(detail::TokenIds(inputs), options);
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
  /// Computes a score for each token of a text: how much it contributes to f. For text-classification and
  /// multiple-choice f is the logit of a label before softmax; for text-generation that of a token that may follow
  /// `position`, by default the last; for fill-mask, token-classification and question-answering with a `position`
  /// that of a token or label there. Otherwise f is a component of the pooled vector. With leave_one_out special tokens
  /// get 0, and so does the token at `position`. A long text is truncated as by classify(), but is an error for
  /// text-generation. The methods are:
  /// integrated_gradients: Σ_e (x - b) · ∫₀¹ ∂f/∂x (b + a (x - b)) da by Gauss-Legendre quadrature, where x are the
  /// word embeddings and b is the embedding of [PAD], except at special tokens and the mask at `position`, where b = x
  /// (Sundararajan, Taly & Yan 2017).
  /// gradient_x_input: Σ_e x · ∂f/∂x.
  /// attention_rollout: the pooled rows, or the row of `position`, of the product of 0.5 A + 0.5 I over the layers, A
  /// averaged over the heads (Abnar & Zuidema 2020).
  /// attention_gradient: the same rows of the product of I + Ā over the layers, Ā the positive part of A · ∂f/∂A
  /// averaged over the heads (Chefer, Gur & Wolf 2021).
  /// leave_one_out: f of the text minus f of the text without the token.
  ///
  /// @param text     UTF-8
  /// @param options  method, target, contrast, position, steps
  /// @return the tokens with their offsets and scores; delta for integrated_gradients
  /// @throws UNSUPPORTED for gradients of int8 weights, without a tokenizer, or for a position or contrast without such logits
  /// @throws ARGUMENT if f is a component of the pooled vector and there is no target
  /// @throws OUT_OF_RANGE if the target, the contrast or the position does not exist
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
  /// A language model learns the next token at each position, as transformers' …ForCausalLM with `labels`: the loss is
  /// the mean cross entropy over the batch's tokens, except the tokens of prompts and the first token. End a text with
  /// the end-of-sequence token, written out, if the model should learn to stop there. Validation accuracy is the share
  /// of tokens that the model would have predicted.
  ///
  /// @param examples  texts or pairs with labels; for a language model texts, with or without a prompt
  /// @param options   epochs, batch size, learning rate, trained layers, labels, validation share
  /// @return mean loss of the last epoch, and the validation accuracy
  /// @throws UNSUPPORTED for int8 weights, without a tokenizer, and for heads with several outputs per text
  /// @throws ARGUMENT if there are no examples, if a text has no token to predict, and for labels or pairs given to a
  /// language model or prompts given to another
  /// @throws OUT_OF_RANGE if labels or layers do not exist; with the step's number if a loss or gradient is not
  /// finite
  /// @throws CONFIG if an option is outside its range
  /// @throws MEMORY if a step would exceed the memory limit. Weights are those after the last complete step
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::vector<attn::FineTuneExample> examples;
  /// for (int i = 0; i < 8; ++i) {
  ///   examples.push_back({.text = "rice", .label = "food"});
  ///   examples.push_back({.text = "rain", .label = "weather"});
  /// }
  /// model.fine_tune(examples, {.epochs = 8, .learning_rate = 1e-3, .labels = {"food", "weather"}});
  /// std::cout << model.classify({"rain"}).at(0).at(0).label;  // weather
  /// @endcode
  FineTuneResult fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options = {});

  /// Returns one vector per text: hidden states pooled over its tokens, passed through the checkpoint's Dense modules if
  /// it has any, and scaled to length 1 if modules.json has Normalize (Reimers & Gurevych 2019). Texts are sorted by length and
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
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const std::vector<std::string> texts{"good", "bad"};
  /// const attn::Shape shape = model.check_embed(2, {});
  /// std::vector<float> vectors(static_cast<std::size_t>(shape[0] * shape[1]));
  /// model.embed(texts, {}, vectors.data());
  /// std::cout << to_string(shape);  // (2,64)
  /// @endcode
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
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const auto results = model.classify({"A wonderful film.", "Far too long and dull."}, {.top_k = 1});
  /// std::cout << results[0][0].label << ' ' << results[1][0].label;  // positive negative
  /// @endcode
  std::vector<std::vector<LabelScore>> classify(const std::vector<std::string>& texts, const ClassifyOptions& options = {}) const;
  /// Classifies pairs of texts. Options and errors as classify().
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const auto results = model.classify_pairs({{"A wonderful film.", "I enjoyed it."}});
  /// std::cout << results[0].size() << ' ' << results[0][0].label;  // 2 positive
  /// @endcode
  std::vector<std::vector<LabelScore>> classify_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                      const ClassifyOptions& options = {}) const;

  /// Finds the entities of each text with their positions, as transformers' TokenClassificationPipeline.
  ///
  /// @param texts    UTF-8
  /// @param options  aggregation, stride, maximum length, batch size
  /// @throws UNSUPPORTED if the model has another kind of head
  /// @throws CONFIG if stride leaves no room, or is given with Aggregation::none
  /// @throws ARGUMENT, OUT_OF_RANGE, MEMORY as embed()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/entities");
  /// const auto found = model.classify_tokens({"Marie Curie lived in Paris."}, {.aggregation = attn::Aggregation::first});
  /// for (const auto& entity : found[0]) std::cout << entity.label << ' ' << entity.text << ' ';  // PER Marie Curie LOC Paris
  /// @endcode
  std::vector<std::vector<Entity>> classify_tokens(const std::vector<std::string>& texts, const ClassifyTokensOptions& options = {}) const;
  /// Predicts the tokens for each mask (mask_token()) of a text, as transformers' FillMaskPipeline.
  ///
  /// @param text     UTF-8 with one or more masks
  /// @param options  top_k, targets, batch size
  /// @return a list for each mask, the most likely token first
  /// @throws ARGUMENT if the text has no mask, or a target begins with no token of the vocabulary
  /// @throws OUT_OF_RANGE if the text is too long
  /// @throws UNSUPPORTED if the model has another kind of head
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/masks");
  /// const auto filled = model.fill_mask("She drank a cup of [MASK].", {.top_k = 2});
  /// std::cout << filled[0][0].token << ' ' << filled[0][1].token;  // tea coffee
  /// @endcode
  std::vector<std::vector<FilledMask>> fill_mask(const std::string& text, const FillMaskOptions& options = {}) const;
  /// Predicts the tokens for each mask of several texts.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/masks");
  /// const auto filled = model.fill_mask_all({"She drank a cup of [MASK].", "The capital of France is [MASK]."}, {.top_k = 1});
  /// std::cout << filled[1][0][0].text;  // the capital of france is paris.
  /// @endcode
  std::vector<std::vector<std::vector<FilledMask>>> fill_mask_all(const std::vector<std::string>& texts, const FillMaskOptions& options = {}) const;
  /// Finds the parts of a context that answer a question, the most likely first, as transformers'
  /// QuestionAnsweringPipeline (version 4). Answers are whole words; there may be fewer than top_k.
  ///
  /// @param question  UTF-8
  /// @param context   UTF-8; a long one is split into overlapping windows
  /// @param options   top_k, max_answer_length, stride, allow_empty, maximum length
  /// @return up to top_k answers with scores and byte offsets in the context
  /// @throws ARGUMENT if the question or context is empty
  /// @throws OUT_OF_RANGE if the question leaves no room for the context
  /// @throws CONFIG if stride leaves no room
  /// @throws UNSUPPORTED if the model has another kind of head
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-bert-qa");  // untrained weights
  /// const std::string context = "A happy person smiles at the child.";
  /// const attn::Answer found = model.answer("Who smiles?", context).at(0);
  /// std::cout << (found.text == context.substr(found.start, found.end - found.start));  // 1
  /// @endcode
  std::vector<Answer> answer(const std::string& question, const std::string& context, const AnswerOptions& options = {}) const;
  /// Answers several questions, each with its context.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-bert-qa");  // untrained weights
  /// const std::string context = "A happy person smiles at the child.";
  /// std::cout << model.answer_all({{"Who smiles?", context}, {"At whom?", context}}).size();  // 2
  /// @endcode
  std::vector<std::vector<Answer>> answer_all(const std::vector<std::pair<std::string, std::string>>& pairs, const AnswerOptions& options = {}) const;
  /// Sorts documents by descending relevance to a query. The model must be a cross-encoder: a head with one label. Scores
  /// are its logits after the activation in the checkpoint's files, by default a sigmoid (sentence-transformers'
  /// CrossEncoder.rank). The default prompt of config_sentence_transformers.json is prepended to the query.
  ///
  /// @param query      UTF-8
  /// @param documents  UTF-8
  /// @param options    top_k, maximum length, prompt, batch size
  /// @return up to top_k documents, each by its index in the given list, with its score
  /// @throws UNSUPPORTED if the model has another kind of head
  /// @throws ARGUMENT, OUT_OF_RANGE, CONFIG, MEMORY as embed()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::vector<attn::FineTuneExample> examples;
  /// for (int i = 0; i < 8; ++i) {
  ///   examples.push_back({.text = "a cheerful film", .label = 1.0, .text_pair = "funny"});
  ///   examples.push_back({.text = "a cheerful film", .label = 0.0, .text_pair = "sad"});
  /// }
  /// model.fine_tune(examples, {.epochs = 8, .learning_rate = 1e-3, .labels = {"relevant"}});
  /// std::cout << model.rank("a cheerful film", {"sad", "funny"}).at(0).index;  // 1
  /// @endcode
  std::vector<RankedDocument> rank(const std::string& query, const std::vector<std::string>& documents, const RankOptions& options = {}) const;
  /// Continues a text by the tokens that the model predicts, one after the other, as transformers' generate(). The keys and values of earlier tokens
  /// are kept, so that each step computes one token. Greedy by default; with `do_sample` the tokens depend only on the seed and the logits.
  ///
  /// @param prompt   UTF-8
  /// @param options  number of tokens, sampling, stop strings
  /// @return the new part of the text, its ids and tokens, and why it ended
  /// @throws UNSUPPORTED if the model has another kind of head
  /// @throws OUT_OF_RANGE if the prompt has more tokens than the model has positions, or a logit is NaN
  /// @throws ARGUMENT if the prompt has no token
  /// @throws CONFIG if an option is outside its range
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
  /// const auto generated = model.generate("The old man", {.max_new_tokens = 3});
  /// std::cout << generated.ids.size() << ' ' << (generated.text == model.decode(generated.ids));  // 3 1
  /// @endcode
  GeneratedText generate(const std::string& prompt, const GenerateOptions& options = {}) const;
  /// Returns the tokens that most likely follow a text, the likeliest first.
  ///
  /// @param text   UTF-8
  /// @param top_k  number of tokens, at least 1
  /// @return top_k tokens with logits and probabilities
  /// @throws CONFIG if top_k is below 1
  /// @throws UNSUPPORTED, OUT_OF_RANGE, ARGUMENT, MEMORY as generate()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
  /// const auto likely = model.next_token("The old man", 2);
  /// std::cout << likely.size() << ' ' << (likely[0].probability >= likely[1].probability);  // 2 1
  /// @endcode
  std::vector<NextToken> next_token(const std::string& text, std::int64_t top_k = 5) const;
  /// Returns how well the model predicts each token of a text from the tokens before it. Throws as generate().
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");  // untrained weights
  /// const auto scored = model.score_tokens("The old man");
  /// std::cout << scored.tokens[0].rank.has_value() << ' ' << scored.tokens[1].rank.has_value();  // 0 1
  /// @endcode
  ScoredText score_tokens(const std::string& text) const;
  /// Creates memory for keys and values that forward() fills and continues from (TextForwardOptions::cache). It belongs to the current weights.
  ///
  /// @param options  room for tokens, number of sequences
  /// @throws UNSUPPORTED unless the model is causal
  /// @throws OUT_OF_RANGE unless max_length is from 1 to the positions of the model
  /// @throws CONFIG if batch_size is below 1
  /// @throws MEMORY if it exceeds the memory limit
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");
  /// attn::KeyValueCache cache = model.create_cache();
  /// for (const char* text : {"The old", " man"}) model.forward(model.tokenize({text}), {.output_logits = false, .cache = &cache});
  /// std::cout << (cache.length() == static_cast<std::int64_t>(model.tokenize({"The old man"}).input_ids.size()));  // 1
  /// @endcode
  KeyValueCache create_cache(const CacheOptions& options = {}) const;
  /// Returns the text of token ids, as Tokenizer::decode().
  ///
  /// @param ids                  token ids; unknown ones are skipped
  /// @param skip_special_tokens  whether to leave out special tokens
  /// @throws UNSUPPORTED for a tokenizer of your own
  /// @throws UNSUPPORTED, MEMORY as Tokenizer::decode()
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// auto ids = model.tokenize({"A warm film."}).input_ids;
  /// std::cout << model.decode(std::vector<std::int64_t>(ids.begin(), ids.end()), true);  // a warm film.
  /// @endcode
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
  /// Returns the shape of the result of unembed(), for callers that own the memory and pass it to run_unembed(); throws its errors.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-gpt2");
  /// auto hidden = model.forward(model.tokenize({"The old man"})).last_hidden_state;
  /// const attn::TensorView view(hidden.data(), attn::to_shape(hidden.shape()));
  /// std::vector<float> logits(static_cast<std::size_t>(attn::checked_size(model.check_unembed(view), "example", "logits")));
  /// model.run_unembed(view, logits.data());
  /// std::cout << logits.size() % hidden.shape(1);  // 0
  /// @endcode
  Shape check_unembed(const TensorView& hidden_states) const;
  /// Writes the logits of hidden states that check_unembed() has accepted, row-major; check_unembed() has an example.
  void run_unembed(const TensorView& hidden_states, float* logits) const;

  /// Returns the shapes of all weights that the model uses, by their names in the checkpoint. Unused tensors (position_ids, a pooler without a head)
  /// are not included.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << to_string(model.parameter_shapes().at("classifier.weight"));  // (2,64)
  /// @endcode
  std::map<std::string, Shape> parameter_shapes() const;
  /// Copies all weights out as float32, by the names of parameter_shapes().
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << (model.state_dict().size() == model.parameter_shapes().size());  // 1
  /// @endcode
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
  /// @param name  one of parameter_shapes()
  /// @return the values, row-major, with the shape in parameter_shapes()
  /// @throws OUT_OF_RANGE if there is no parameter of that name
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.get_parameter("classifier.bias").size();  // 2
  /// @endcode
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
  ///
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// model.load_state_dict(attn::StateDict{{"classifier.bias", xt::xarray<float>{100, 0}}}, false);
  /// std::cout << model.classify({"A wonderful film."}).at(0).at(0).label;  // negative
  /// @endcode
  template <class Of = TextModel, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// Copies all weights to the memory in `target`, row-major, as Module::save_state().
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::vector<float> bias(2);
  /// model.save_state({{"classifier.bias", bias.data()}});
  /// std::cout << (bias.at(0) == model.get_parameter("classifier.bias")(0));  // 1
  /// @endcode
  void save_state(const StateTarget& target) const;
  /// Copies weights in, as load_state_dict(). In an int8 model each row is rounded with its own scale, as when a file is loaded. Throws FORMAT if
  /// such a row has NaN or infinity.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const std::vector<float> bias{100, 0};
  /// model.load_state({{"classifier.bias", attn::TensorView(bias.data(), {2})}}, false);
  /// std::cout << model.get_parameter("classifier.bias");  // { 100., 0.}
  /// @endcode
  void load_state(const StateView& state, bool strict = true);

  /// Returns the word embeddings, which offer nearest(), similarity() and analogy(). Valid as long as the model.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// const attn::Embedding& words = model.word_embeddings();
  /// const auto good = *model.token_to_id("good"), fine = *model.token_to_id("great"), bad = *model.token_to_id("dull");
  /// std::cout << (words.similarity(good, fine) > words.similarity(good, bad));  // 1
  /// @endcode
  const Embedding& word_embeddings() const;
  /// Returns the id of a token, or none if the vocabulary does not have it.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << *model.token_to_id("film") << ' ' << model.token_to_id("xyzzy").has_value();  // 222 0
  /// @endcode
  std::optional<std::int64_t> token_to_id(const std::string& token) const;
  /// Returns the token of an id, or none if the vocabulary does not have it.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << *model.id_to_token(0) << ' ' << model.id_to_token(1'000'000).has_value();  // [PAD] 0
  /// @endcode
  std::optional<std::string> id_to_token(std::int64_t id) const;
  /// Returns the token that fill_mask() replaces: [MASK] or <mask>. Throws UNSUPPORTED for a tokenizer that the caller supplied.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/masks");
  /// std::cout << model.fill_mask("The capital of France is " + *model.mask_token() + ".").at(0).at(0).token;  // paris
  /// @endcode
  std::optional<std::string> mask_token() const;

  /// Returns the task of the checkpoint's head.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/entities");
  /// std::cout << name_of(model.task());  // token-classification
  /// @endcode
  Task task() const;
  /// Returns messages about content of the files that the model does not use, such as tensors of another head. transformers warns about it.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/tiny-bert");
  /// std::cout << model.notes().empty();  // 1
  /// @endcode
  const std::vector<std::string>& notes() const;
  /// Returns the label names of a text or token classification head, otherwise an empty list.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.labels().at(0) << ' ' << model.labels().at(1);  // negative positive
  /// @endcode
  const std::vector<std::string>& labels() const;
  /// Returns the number of layers that a text passes through; ALBERT's shared layers count once per pass.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.num_layers();  // 2
  /// @endcode
  std::int64_t num_layers() const;
  /// Returns the number of attention heads of a layer.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.num_heads();  // 4
  /// @endcode
  std::int64_t num_heads() const;
  /// Returns the texts for EmbedOptions::prompt_name by name: those of config_sentence_transformers.json, and empty ones named query and document.
  /// sentence-transformers has these two for every model.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.prompts().count("query") << ' ' << model.prompts().at("query").empty();  // 1 1
  /// @endcode
  std::map<std::string, std::string> prompts() const;
  /// Returns the default of max_length: longer texts are truncated to that many ids.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << model.max_length();  // 128
  /// @endcode
  std::int64_t max_length() const;
  /// Returns the number type of the linear layers' weights and usually of the word embeddings.
  /// @code
  /// auto model = attn::TextModel::load("testdata/models/sentiment");
  /// std::cout << (model.weights() == attn::Weights::float32);  // 1
  /// @endcode
  Weights weights() const;

 private:
  friend class detail::LensModel;
  friend const std::vector<std::uint8_t>* detail::find_small_file(const TextModel& model, const std::string& name);
  friend void detail::save_pretrained(const TextModel& model, const FilePath& folder, const SaveOptions& options, detail::StagedFiles& files);
  struct Parts;
  struct Windows;
  explicit TextModel(std::unique_ptr<Parts> parts);

  const EncoderModel& encoder() const;
  EncoderModel& encoder();
  /// Checks the arguments of gradients() and runs its forward.
  detail::ModelGradient gradient_of(const detail::TokenIds& inputs, const GradientOptions& options);
  /// Returns the index of a gradient's label: of a token, of an answer's start or end, or of a class.
  std::int64_t output_number(std::string_view op, std::string_view name, const std::variant<std::int64_t, std::string>& given) const;
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
