#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/state_dict.hpp"
#include "attn/models/embeddings.hpp"
#include "attn/models/head.hpp"
#include "attn/models/model_config.hpp"
#include "attn/models/model_inputs.hpp"
#include "attn/models/output_logits.hpp"
#include "attn/models/padding_order.hpp"
#include "attn/models/stack.hpp"
#include "attn/store/key_value_cache.hpp"

namespace attn {

namespace detail {

/// Replaces values of one layer, both (B,L,E). Refers to the caller's memory.
struct ModelPatch {
  std::int64_t layer = 0;
  std::optional<TensorView> hidden_state = std::nullopt, merged = std::nullopt;
};

/// Options for a forward. Refers to the caller's memory.
struct ModelForwardOptions {
  bool output_attentions = false, output_hidden_states = false;
  std::optional<EncoderTraceOptions> trace = std::nullopt;
  bool for_backward = false;  ///< include run_and_keep() and backward() in the memory estimate
  std::optional<MaskView> mask = std::nullopt;
  bool is_causal = false;
  std::optional<TensorView> head_mask = std::nullopt;  ///< (layers,H)
  std::vector<ModelPatch> patches = {};
  OutputLogits logits = true;      ///< last: only of a token head
  KeyValueCache* cache = nullptr;  ///< made by EncoderModel::make_cache(); the forward appends to it
};

/// Axis of the softmax over the logits of single tokens.
enum class TokenSoftmax : std::uint8_t {
  none,
  outputs,  ///< for each token, over its outputs
  tokens,   ///< for each output, over the requested tokens of a sequence
};
inline constexpr std::array<std::string_view, 3> kTokenSoftmaxNames{"none", "outputs", "tokens"};

/// How the hidden states of a sequence become one vector.
struct ModelEmbedOptions {
  std::vector<Pooling> poolings = {};  ///< several results are concatenated
  bool normalize = false;
  std::int64_t prompt_length = 0;  ///< number of positions at the start that are not pooled
  bool normalize_kept = false;     ///< also normalize after truncate_dim, as sentence-transformers' encode() does on request
};

/// Destinations of gradients; null, empty or without reserved memory if not requested.
struct ModelGradientBuffers {
  float* embeddings = nullptr;            ///< (B,L,word_width()), for the word embedding at each position
  std::vector<TraceBuffers> traces = {};  ///< by layer, null if not requested; empty without traces
  Gradients* parameters = nullptr;        ///< by the names of EncoderModel::state_shapes()
  /// Lowest layer that needs gradients, at which backward stops; the number of stored layers: only the head; none: everything, including embeddings.
  std::optional<std::int64_t> first_layer = std::nullopt;
};

// Defined in models/kept_model.hpp.
struct KeptModel;
struct KeptHead;

/// A forward whose arguments were checked, before anything is allocated. Refers to the inputs.
struct ModelPlan {
  EncoderPlan encoder;
  std::int64_t sequences = 0;
  Shape logits = {};  ///< (B,C), for a token head (B,L,C) or (B,1,C); rank 0 if not computed
  OutputLogits rows = true;
  std::shared_ptr<PaddingOrder> order = nullptr;  ///< null: padding is where the model needs it
};

}  // namespace detail

/// The Transformer of a checkpoint: embeddings, a stack of layers, and a head if there is one. Takes token ids and returns hidden states and
/// logits. ModelLoader reads its weights; TextModel adds the tokenizer.
class EncoderModel {
 public:
  /// Creates a model without weights.
  explicit EncoderModel(detail::ModelConfig config);
  EncoderModel(const EncoderModel&) = delete;  // parameters refer to it
  EncoderModel& operator=(const EncoderModel&) = delete;

  const detail::ModelConfig& config() const { return config_; }
  /// Sets a variant of the family with other tensor names.
  void set_family(const detail::Family& family) { config_.family = &family; }
  void add_note(std::string note) { config_.notes.push_back(std::move(note)); }
  const Embedding& word_embeddings() const { return embeddings_.words(); }
  Embedding& word_embeddings() { return embeddings_.words(); }

  /// Checks the arguments of a forward. Throws SHAPE, MASK, OUT_OF_RANGE for an id outside the table or more ids than positions, MEMORY.
  detail::ModelPlan plan(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelForwardOptions& options) const;
  /// Runs a forward; logits may be null.
  void run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits) const;

  /// Creates an empty cache. Throws UNSUPPORTED unless the model is causal, OUT_OF_RANGE for more tokens than positions, CONFIG, MEMORY.
  KeyValueCache make_cache(std::int64_t batch_size, std::int64_t max_length) const;

  /// Returns the options that trace a single layer. Throws OUT_OF_RANGE if the layer does not exist.
  EncoderTraceOptions trace_of(std::string_view op, std::int64_t layer, Trace names) const;

  /// Checks the arguments of embed() and returns the shape of its result, (sequences, embedding_size()). Throws CONFIG for Pooling::none, and if the
  /// width of the pooled vectors is not the input width of Dense.
  Shape check_embed(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options) const;
  std::int64_t embedding_size(std::string_view op, const detail::ModelEmbedOptions& options) const;
  /// Computes sentence embeddings: hidden states pooled over the tokens, passed through the checkpoint's Dense modules if it has any, and scaled to
  /// length 1 if `normalize` is set (Reimers & Gurevych 2019; torch.nn.functional.normalize).
  void embed(const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options, float* y) const;

  /// Throws UNSUPPORTED unless the head is for this task.
  void check_task(std::string_view op, Task task) const;
  /// Checks the arguments of classify() and returns the shape (sequences,C) of its scores. Throws UNSUPPORTED without a text classification head.
  Shape check_classify(std::string_view op, const detail::ModelInputs& inputs) const;
  /// Computes scores: the config's classification_function of the logits, or its text_function if the texts are not pairs.
  void classify(const detail::ModelInputs& inputs, float* y, bool are_pairs = true) const;

  /// Checks the arguments of classify_tokens() and returns the shape of its result, (places,C). `places` are indices in input_ids, in
  /// ascending order. Throws UNSUPPORTED unless the head is for this task, OUT_OF_RANGE for an index outside input_ids.
  Shape check_tokens(std::string_view op, Task task, const detail::ModelInputs& inputs, std::span<const std::int64_t> places) const;
  /// Computes the logits of the tokens at `places`, after a softmax if requested.
  void classify_tokens(const detail::ModelInputs& inputs, std::span<const std::int64_t> places, detail::TokenSoftmax softmax, float* y) const;

  /// Checks hidden states (…,E) and returns the shape (…,outputs()) of their logits. Throws UNSUPPORTED unless the head predicts tokens.
  Shape check_unembed(std::string_view op, const Shape& hidden) const;
  /// Computes the head's logits (count,outputs()) of rows (count,E) of the last hidden state.
  void run_head(const float* rows, std::int64_t count, float* logits) const;

  bool has_head() const { return config_.has_head(); }
  /// Whether there is a head that computes logits for whole texts, not for tokens.
  bool has_text_head() const { return config_.has_head() && !config_.of_tokens(); }
  /// Removes the head. Call it before allocate().
  void leave_out_head();
  /// Returns the size of a result: the head's outputs, or else the vector pooled with the checkpoint's poolings (several are concatenated), before
  /// its Dense and normalization.
  std::int64_t result_size(bool of_head) const;
  /// Runs a forward and computes its results (sequences,result_size(has_text_head())).
  void run_result(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* result) const;

  /// Throws UNSUPPORTED for int8 weights, which have no gradients.
  void check_gradients(std::string_view op) const;
  /// Runs a forward, with the head if `of_head`, and saves the values that backward() needs. In training, `random` applies dropout with the
  /// checkpoint's probabilities. `words`, if not null, has the word embedding of each position. A token head computes results only for `tokens`,
  /// which are rows of the hidden states.
  std::unique_ptr<detail::KeptModel> run_and_keep(const detail::ModelPlan& plan, const detail::ModelInputs& inputs,
                                                  const detail::EncoderBuffers& buffers, bool of_head, const detail::Table* words = nullptr,
                                                  const detail::ForwardRandom& random = {}, std::span<const std::int64_t> tokens = {}) const;
  /// Computes gradients from grad (results,result_size(of_head)), the gradient of the results. Rows of grad that are 0 have no effect.
  void backward(const detail::KeptModel& kept, const float* grad, const detail::ModelGradientBuffers& to) const;
  /// Runs only the head, from pooled vectors, and saves the values that its backward() needs.
  void run_head_and_keep(detail::KeptHead& kept) const;
  void backward(const detail::KeptHead& kept, const float* grad, detail::Gradients& gradients) const;
  /// Replaces the head by a new one for these labels: weights N(0, 0.02²) from the seed, biases 0 (initializer_range of transformers). Tensors are
  /// then named as in transformers' ...ForSequenceClassification.
  void set_head(std::vector<std::string> labels, std::uint64_t seed);
  /// Whether set_head() made the head.
  bool is_head_new() const { return is_head_new_; }
  /// Returns the shapes of the parameters by the names that the layers use: "word_embeddings.weight", "encoder.layers.0.linear1.weight".
  std::map<std::string, Shape> state_shapes() const { return detail::shapes_of(tensors_by(detail::ParameterVisitor::Names::torch)); }
  detail::StateTensors state_tensors() { return parameters(detail::ParameterVisitor::Names::torch); }

  /// Weights by their names in the checkpoint, with the interface of Module.
  std::map<std::string, Shape> parameter_shapes() const { return detail::shapes_of(tensors_); }
  void save_state(const StateTarget& target) const { detail::save_state(tensors_, target); }
  void load_state(const StateView& state, bool strict);
  const detail::StateTensors& tensors() const { return tensors_; }
  /// Whether int8 files of the model store this tensor as int8: if it is int8 in a quantized model, or can be in another model.
  bool is_int8_in_files(const detail::StateTensor& tensor) const { return tensor.can_be_int8() && (!is_quantized() || tensor.is_quantized()); }
  void set_tensors(detail::StateTensors tensors) { tensors_ = std::move(tensors); }
  void add_embedding_dense(detail::Linear dense) { embedding_denses_.push_back(std::move(dense)); }

  /// Returns references to the parameters, which the caller may change.
  detail::StateTensors parameters(detail::ParameterVisitor::Names names = detail::ParameterVisitor::Names::separate);
  /// Makes the weights of linear layers int8, and with `words` also the word embeddings. Call it before allocate().
  void quantize(bool words = true);
  bool is_quantized() const { return stack_.is_quantized(); }
  /// Allocates the parameters, all zero, and computes the tables that depend only on the configuration.
  void allocate();

 private:
  void run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits,
           detail::Scratch& scratch) const;
  friend class detail::ParameterVisitor;
  void visit_parameters(detail::ParameterVisitor& visitor);
  /// Returns how often the word embeddings were changed on their own.
  std::uint64_t word_changes() const;
  /// Checks the cache against the inputs.
  void check_cache(std::string_view op, const detail::ModelInputs& inputs, const KeyValueCache& cache) const;
  /// Computes logits of all tokens or the last ones from hidden states.
  void run_token_head(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const float* hidden, float* logits,
                      detail::Scratch& scratch) const;
  detail::StateTensors tensors_by(detail::ParameterVisitor::Names names) const;

  detail::ModelConfig config_;
  detail::Embeddings embeddings_;
  detail::Stack stack_;
  std::vector<detail::Linear> embedding_denses_;  // applied after pooling in embed()
  detail::Head head_;                             // unused without a head
  bool is_head_new_ = false;
  detail::StateTensors tensors_;                                        // by their names in the checkpoint
  std::shared_ptr<const int> weights_ = std::make_shared<const int>();  // identifies the current weights to caches
  mutable detail::Workspace workspace_;
};

}  // namespace attn
