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
#include "attn/memory/key_value_cache.hpp"
#include "attn/models/embeddings.hpp"
#include "attn/models/head.hpp"
#include "attn/models/image_head.hpp"
#include "attn/models/model_config.hpp"
#include "attn/models/model_inputs.hpp"
#include "attn/models/output_logits.hpp"
#include "attn/models/padding_order.hpp"
#include "attn/models/stack.hpp"

namespace attn {

namespace detail {

/// As LayerPatch. Refers to the caller's memory.
struct ModelPatch {
  std::int64_t layer = 0;
  std::optional<TensorView> hidden_state = std::nullopt, merged = std::nullopt, q_proj = std::nullopt, k_proj = std::nullopt, v_proj = std::nullopt,
                            weights = std::nullopt;
};

/// Options of run_and_keep(). Refers to the caller's memory.
struct ModelKeepOptions {
  bool of_head = false;                       ///< save the head's results, not pooled vectors
  const Table* words = nullptr;               ///< if not null, has the word embedding of each position
  ForwardRandom random = {};                  ///< in training, applies the checkpoint's dropout
  std::span<const std::int64_t> tokens = {};  ///< rows of the hidden states for which a token head computes results
};

/// Refers to the caller's memory.
struct ModelForwardOptions {
  bool output_attentions = false, output_hidden_states = false;
  std::optional<EncoderTraceOptions> trace = std::nullopt;
  bool for_backward = false;  ///< run_and_keep() follows, with these options
  ModelKeepOptions keep = {};
  std::optional<MaskView> mask = std::nullopt;
  bool is_causal = false;
  std::optional<TensorView> head_mask = std::nullopt;  ///< (layers,H)
  std::vector<ModelPatch> patches = {};
  std::optional<TensorView> inputs_embeds = std::nullopt;  ///< (B,L,word_width())
  OutputLogits logits = true;                              ///< last: only of a token head
  KeyValueCache* cache = nullptr;                          ///< the forward appends to it
};

enum class TokenSoftmax : std::uint8_t {
  none,
  outputs,  ///< over a token's outputs
  tokens,   ///< over the requested tokens of a sequence
};
inline constexpr std::array<std::string_view, 3> kTokenSoftmaxNames{"none", "outputs", "tokens"};

struct ModelEmbedOptions {
  std::vector<Pooling> poolings = {};
  bool normalize = false;
  std::int64_t prompt_length = 0;  ///< positions that are not pooled
  bool normalize_kept = false;     ///< also after truncate_dim, as sentence-transformers' encode() on request
};

/// Null, empty or without reserved memory if not requested.
struct ModelGradientBuffers {
  float* embeddings = nullptr;            ///< (B,L,word_width()), of the word embeddings
  std::vector<TraceBuffers> traces = {};  ///< by layer
  Gradients* parameters = nullptr;        ///< by the names of state_shapes()
  /// Backward stops at this layer; the number of stored layers: only the head; none: also the embeddings.
  std::optional<std::int64_t> first_layer = std::nullopt;
};

struct KeptModel;
struct KeptHead;

/// Refers to the inputs.
struct ModelPlan {
  EncoderPlan encoder;
  std::int64_t sequences = 0;
  Shape logits = {};  ///< (B,C), for a token head (B,L,C) or (B,1,C); rank 0: not computed
  OutputLogits rows = true;
  const float* embeds = nullptr;                  ///< as in ModelInputs
  std::shared_ptr<PaddingOrder> order = nullptr;  ///< null: padding is in order
};

}  // namespace detail

/// A checkpoint's Transformer. ModelLoader reads its weights; TextModel adds the tokenizer.
class EncoderModel {
 public:
  explicit EncoderModel(detail::ModelConfig config);
  EncoderModel(const EncoderModel&) = delete;  // parameters refer to it
  EncoderModel& operator=(const EncoderModel&) = delete;

  const detail::ModelConfig& config() const { return config_; }
  void set_family(const detail::Family& family) { config_.family = &family; }
  void add_note(std::string note) { config_.notes.push_back(std::move(note)); }
  const Embedding& word_embeddings() const { return embeddings_.words(); }
  Embedding& word_embeddings() { return embeddings_.words(); }

  /// Checks inputs and memory.
  detail::ModelPlan plan(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelForwardOptions& options) const;
  /// logits may be null.
  void run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits) const;

  /// Throws UNSUPPORTED unless the model is causal.
  KeyValueCache make_cache(std::int64_t batch_size, std::int64_t max_length) const;

  EncoderTraceOptions trace_of(std::string_view op, std::int64_t layer, Trace names) const;

  /// Returns (sequences,embedding_size()).
  Shape check_embed(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options) const;
  std::int64_t embedding_size(std::string_view op, const detail::ModelEmbedOptions& options) const;
  /// Pools hidden states, applies the checkpoint's Dense modules and normalizes on request (Reimers & Gurevych 2019).
  void embed(const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options, float* y) const;

  void check_task(std::string_view op, Task task) const;
  /// Returns (sequences,C).
  Shape check_classify(std::string_view op, const detail::ModelInputs& inputs) const;
  /// text_function applies unless the texts are pairs.
  void classify(const detail::ModelInputs& inputs, float* y, bool are_pairs = true) const;

  /// Returns (places,C). `places` are ascending indices in input_ids.
  Shape check_tokens(std::string_view op, Task task, const detail::ModelInputs& inputs, std::span<const std::int64_t> places) const;
  void classify_tokens(const detail::ModelInputs& inputs, std::span<const std::int64_t> places, detail::TokenSoftmax softmax, float* y) const;

  /// Throws SHAPE unless pixels is (B,channels,height,width). The result refers to `pixels`.
  detail::ModelInputs image_inputs(std::string_view op, const TensorView& pixels) const;
  /// Returns (B,width).
  Shape check_image_embed(std::string_view op, const detail::ModelInputs& inputs, ImagePooling pooling) const;
  void embed_images(const detail::ModelInputs& inputs, ImagePooling pooling, bool normalize, float* y) const;
  /// Call it before allocate().
  void leave_out_pooler();

  /// Returns (…,outputs()) for hidden states (…,E).
  Shape check_unembed(std::string_view op, const Shape& hidden) const;
  /// rows (count,E), logits (count,outputs())
  void run_head(const float* rows, std::int64_t count, float* logits) const;

  bool has_head() const { return config_.has_head(); }
  bool has_text_head() const { return config_.has_head() && !config_.of_tokens(); }
  /// Call it before allocate().
  void leave_out_head();
  /// Of run_result(): the head's outputs, or the pooled vector before Dense.
  std::int64_t result_size(bool of_head) const;
  /// result (sequences,result_size(has_text_head()))
  void run_result(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* result) const;

  void check_gradients(std::string_view op) const;
  /// Saves what backward() needs. The options are those of the plan.
  std::unique_ptr<detail::KeptModel> run_and_keep(const detail::ModelPlan& plan, const detail::ModelInputs& inputs,
                                                  const detail::EncoderBuffers& buffers, const detail::ModelKeepOptions& options) const;
  /// grad (results,result_size(of_head)); rows that are 0 have no effect.
  void backward(const detail::KeptModel& kept, const float* grad, const detail::ModelGradientBuffers& to) const;
  /// Runs only the head, from pooled vectors.
  void run_head_and_keep(detail::KeptHead& kept) const;
  void backward(const detail::KeptHead& kept, const float* grad, detail::Gradients& gradients) const;
  /// Makes a new head: weights N(0, 0.02²) (transformers' initializer_range), biases 0. Names its tensors as ...ForSequenceClassification.
  void set_head(std::vector<std::string> labels, std::uint64_t seed);
  bool is_head_new() const { return is_head_new_; }
  /// By attn's names, such as "encoder.layers.0.linear1.weight".
  std::map<std::string, Shape> state_shapes() const { return detail::shapes_of(tensors_by(detail::ParameterVisitor::Names::torch)); }
  detail::StateTensors state_tensors() { return parameters(detail::ParameterVisitor::Names::torch); }

  /// By the names in the checkpoint, with Module's interface.
  std::map<std::string, Shape> parameter_shapes() const { return detail::shapes_of(tensors_); }
  void save_state(const StateTarget& target) const { detail::save_state(tensors_, target); }
  void load_state(const StateView& state, bool strict);
  const detail::StateTensors& tensors() const { return tensors_; }
  bool is_int8_in_files(const detail::StateTensor& tensor) const { return tensor.can_be_int8() && (!is_quantized() || tensor.is_quantized()); }
  void set_tensors(detail::StateTensors tensors) { tensors_ = std::move(tensors); }
  void add_embedding_dense(detail::Linear dense) { embedding_denses_.push_back(std::move(dense)); }

  /// The caller may change them.
  detail::StateTensors parameters(detail::ParameterVisitor::Names names = detail::ParameterVisitor::Names::separate);
  /// Call it before allocate(). `words`: also the word embeddings.
  void quantize(bool words = true);
  bool is_quantized() const { return stack_.is_quantized(); }
  /// All zero. Computes tables that depend only on the configuration.
  void allocate();

 private:
  /// plan() without the check of memory, for functions that are themselves run to count it.
  detail::ModelPlan prepare(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelForwardOptions& options) const;
  void run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits,
           detail::Scratch& scratch) const;
  friend class detail::ParameterVisitor;
  void visit_parameters(detail::ParameterVisitor& visitor);
  /// How often the word embeddings were changed on their own.
  std::uint64_t word_changes() const;
  void check_cache(std::string_view op, const detail::ModelInputs& inputs, const KeyValueCache& cache) const;
  void run_token_head(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const float* hidden, float* logits,
                      detail::Scratch& scratch) const;
  detail::StateTensors tensors_by(detail::ParameterVisitor::Names names) const;

  detail::ModelConfig config_;
  detail::Embeddings embeddings_;
  detail::Stack stack_;
  std::vector<detail::Linear> embedding_denses_;
  detail::Head head_;
  detail::ImageHead image_head_;
  bool is_head_new_ = false;
  detail::StateTensors tensors_;                                        // by their names in the checkpoint
  std::shared_ptr<const int> weights_ = std::make_shared<const int>();  // identifies the current weights to caches
  mutable detail::Workspace workspace_;
};

}  // namespace attn
