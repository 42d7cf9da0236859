#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/embedding.hpp"
#include "attn/layers/transformer_encoder.hpp"
#include "attn/models/checkpoint_tensor.hpp"
#include "attn/models/head.hpp"
#include "attn/models/model_config.hpp"
#include "attn/ops/embedding.hpp"

namespace attn {

namespace detail {

/// Padded sequences of token ids. Refers to the caller's memory.
struct ModelInputs {
  Shape shape = {};  ///< (B,L)
  std::span<const std::int64_t> input_ids = {};
  std::span<const std::int64_t> token_type_ids = {};  ///< or none: all 0
  const MaskView* attention_mask = nullptr;           ///< (B,L), what is no padding; null: everything
  /// Sequences of these lengths one after the other without padding, the shape is (1,rows); empty: B of L.
  std::span<const SequenceRun> runs = {};
};
/// The row of a position bias for a key so far behind its query.
std::size_t bucket_of(std::int64_t distance);
/// Its sequences, of one length each.
std::vector<SequenceRun> runs_of(const ModelInputs& inputs);
/// hidden states (..,E) -> pooled, by sequence; its rows are `stride` apart. Positions before `first` are not pooled.
void pool_sequences(const ModelInputs& inputs, std::int64_t E, const float* hidden, Pooling pooling, float* pooled, std::int64_t stride,
                    std::int64_t first = 0);

/// What a forward shall return besides the last hidden state, and what it shall do otherwise. Refers to the caller's memory.
struct ModelForwardOptions {
  bool output_attentions = false, output_hidden_states = false;
  std::optional<EncoderTraceOptions> trace = std::nullopt;
  bool for_backward = false;  ///< the memory of run_and_keep() and backward() is counted, too
  std::optional<MaskView> mask = std::nullopt;
  bool is_causal = false;
  std::optional<TensorView> head_mask = std::nullopt;  ///< (layers,H)
  std::optional<std::int64_t> patched_layer = std::nullopt;
  std::optional<TensorView> hidden_state = std::nullopt, merged = std::nullopt;  ///< (B,L,E), of the patched layer
  bool logits = true;                                                            ///< of the head, where there is one
};

/// What softmax of the logits of single tokens goes over.
enum class TokenSoftmax : std::uint8_t {
  none,
  outputs,  ///< each token's
  tokens,   ///< each output's of all tokens of a sequence that are asked for
};
inline constexpr std::array<std::string_view, 3> kTokenSoftmaxNames{"none", "outputs", "tokens"};

/// How one vector is made of a sequence.
struct ModelEmbedOptions {
  std::vector<Pooling> poolings = {};  ///< side by side
  bool normalize = false;
  std::int64_t prompt_length = 0;  ///< positions at the start that are not pooled
  bool normalize_kept = false;     ///< what truncate_dim leaves, too, as sentence-transformers' encode() where it is asked to
};

/// Where gradients go; null, none or without room where they are not asked for.
struct ModelGradientBuffers {
  float* embeddings = nullptr;          ///< (B,L,E), of the word embedding at each place
  std::vector<float*> attentions = {};  ///< by layer (B,H,L,L)
  Gradients* parameters = nullptr;      ///< by the names of EncoderModel::state_shapes()
  /// The lowest layer that gradients are wanted of, as many as there are: of the head alone. Backward ends there; none: it goes through everything.
  std::optional<std::int64_t> first_layer = std::nullopt;
};

/// By layer: keys of relative positions, packed, and queries; for backward also keys as they are, and what all of them are made of.
using RelativeLayers = std::vector<AlignedFloats>;
/// What scores get of positions, and where that lies.
struct ScorePositions {
  PositionBias bias = {};
  std::vector<std::int32_t> rows = {};  ///< of the table of relative positions, by query - key
  std::vector<RelativePositions> relative = {};
  const RelativeLayers* layers = nullptr;  ///< the model's, or own_layers
  std::unique_ptr<const RelativeLayers> own_layers = nullptr;
};

/// What calls share once one of them has computed it. Until then each computes its own, without a lock: in the middle of it an executor may call
/// again, and another thread fork().
template <class T>
class Published {
 public:
  Published() = default;
  ~Published() { reset(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  const T* get() const { return value_.load(std::memory_order_acquire); }
  /// Returns what all share from now on: `value`, or what another call has published before.
  const T* publish(std::unique_ptr<const T> value) {
    const T* before = nullptr;
    return value_.compare_exchange_strong(before, value.get(), std::memory_order_acq_rel) ? value.release() : before;
  }
  /// Between calls only.
  void reset() { delete value_.exchange(nullptr, std::memory_order_acq_rel); }

 private:
  std::atomic<const T*> value_{nullptr};
};

struct KeptModel;  // models/kept_model.hpp, as the next
struct KeptHead;

/// Some numbers of a gradient: of the parameter of that name from number `first` on.
struct GradientPart {
  std::string name;
  std::size_t first = 0, size = 0;
};

/// A forward that is checked, before anything is allocated. It refers to the inputs.
struct ModelPlan {
  EncoderPlan encoder;
  std::int64_t sequences = 0;
  Shape logits = {};  ///< (B,C), of tokens (B,L,C), or rank 0 where there are none
};

}  // namespace detail

/// The Transformer of a checkpoint: token ids in, hidden states out, and where there is a head classes. Its weights are those of a
/// ModelLoader; TextModel adds the tokenizer.
class EncoderModel {
 public:
  /// Without weights yet.
  explicit EncoderModel(detail::ModelConfig config);
  EncoderModel(const EncoderModel&) = delete;  // parameters refer to it
  EncoderModel& operator=(const EncoderModel&) = delete;

  const detail::ModelConfig& config() const { return config_; }
  /// The same with other names of tensors.
  void set_family(const detail::Family& family) { config_.family = &family; }
  void add_note(std::string note) { config_.notes.push_back(std::move(note)); }
  const Embedding& word_embeddings() const { return words_; }
  Embedding& word_embeddings() { return words_; }

  /// Throws SHAPE, MASK, OUT_OF_RANGE for an id that the table does not have or a sequence longer than there are positions, MEMORY.
  detail::ModelPlan plan(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelForwardOptions& options) const;
  /// logits may be null.
  void run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits) const;

  /// What trace_layer asks a forward for: one layer, which must be there.
  EncoderTraceOptions trace_of(std::string_view op, std::int64_t layer, Trace names) const;

  /// Sentence embeddings: hidden states pooled over what is no padding, through the checkpoint's Dense where it has one, scaled to length 1
  /// where `normalize` (Reimers & Gurevych 2019; torch.nn.functional.normalize). The shape is (B, embedding_size()). Throws CONFIG for pooling
  /// none, and where Dense takes another number of them.
  Shape check_embed(std::string_view op, const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options) const;
  std::int64_t embedding_size(std::string_view op, const detail::ModelEmbedOptions& options) const;
  void embed(const detail::ModelInputs& inputs, const detail::ModelEmbedOptions& options, float* y) const;

  /// Throws UNSUPPORTED for a head that is for something else, or none.
  void check_task(std::string_view op, Task task) const;
  /// Scores (B,C): the config's classification_function of the logits, of texts that are not pairs its text_function. Throws UNSUPPORTED without a
  /// head.
  Shape check_classify(std::string_view op, const detail::ModelInputs& inputs) const;
  void classify(const detail::ModelInputs& inputs, float* y, bool are_pairs = true) const;

  /// Logits of the tokens at these places, rising row-major numbers of input_ids, (places,C); as a softmax where that is asked for. Throws
  /// UNSUPPORTED unless the head is for this, OUT_OF_RANGE for a place that is not there or padding.
  Shape check_tokens(std::string_view op, Task task, const detail::ModelInputs& inputs, std::span<const std::int64_t> places) const;
  void classify_tokens(const detail::ModelInputs& inputs, std::span<const std::int64_t> places, detail::TokenSoftmax softmax, float* y) const;

  bool has_head() const { return config_.has_head(); }
  /// Whether it is of whole texts.
  bool has_text_head() const { return config_.has_head() && !config_.of_tokens(); }
  /// Leaves the head out, before there is room for it.
  void leave_out_head();
  /// Numbers of a result: of the head, or else of hidden states pooled as the checkpoint says, by one pooling or side by side by several, before
  /// its Dense and scaling.
  std::int64_t result_size(bool of_head) const;
  /// A forward and its results (sequences,result_size(has_text_head())).
  void run_result(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* result) const;

  /// Throws UNSUPPORTED for int8, which has no gradients.
  void check_gradients(std::string_view op) const;
  /// The same forward, of logits or not, with what backward() needs; where `random` is of a training with the checkpoint's probabilities, with its
  /// dropout. `words`, where it is not null, has the word embedding of each place. A head of tokens has results of these `tokens` alone, rows of
  /// hidden states.
  std::unique_ptr<detail::KeptModel> run_and_keep(const detail::ModelPlan& plan, const detail::ModelInputs& inputs,
                                                  const detail::EncoderBuffers& buffers, bool of_head, const detail::Table* words = nullptr,
                                                  const detail::ForwardRandom& random = {}, std::span<const std::int64_t> tokens = {}) const;
  /// Gradients from that of the results, grad (results,result_size(of_head)). Rows of it that are 0 take no part.
  void backward(const detail::KeptModel& kept, const float* grad, const detail::ModelGradientBuffers& to) const;
  /// The same of the head alone, from what is pooled on.
  void run_head_and_keep(detail::KeptHead& kept) const;
  void backward(const detail::KeptHead& kept, const float* grad, detail::Gradients& gradients) const;
  /// A new head for these labels in place of what is there: weights N(0, 0.02²) from the seed, biases 0 (initializer_range of transformers). Tensors
  /// are then named as in transformers' ...ForSequenceClassification.
  void set_head(std::vector<std::string> labels, std::uint64_t seed);
  /// Whether set_head() made the head.
  bool is_head_new() const { return is_head_new_; }
  /// Parameters as the layers' states name and shape them, and where they lie.
  std::map<std::string, Shape> state_shapes() const;
  detail::StateParameters state_parameters();
  /// For each of tensors() where the gradients of its parts lie, one below the other.
  std::vector<std::vector<detail::GradientPart>> gradient_parts();

  /// The weights by the checkpoint's own names, as Module has them.
  std::map<std::string, Shape> parameter_shapes() const;
  void save_state(const StateTarget& target) const;
  void load_state(const StateView& state, bool strict);
  /// In the order of their names.
  const std::vector<detail::CheckpointTensor>& tensors() const { return tensors_; }
  void set_tensors(std::vector<detail::CheckpointTensor> tensors) { tensors_ = std::move(tensors); }
  void set_embedding_dense(detail::Linear dense) { embedding_dense_ = std::move(dense); }

  /// Names where the numbers will be, as EncoderModel's members are called: "word_embeddings.weight", "encoder.layers.0.linear1.weight".
  detail::Parameters parameters();
  /// Before there is room: weights of linear maps are to be int8, and where `words` the word table.
  void quantize(bool words = true);
  bool is_quantized() const { return is_quantized_; }
  /// Makes room for them, all zero, and the tables that follow from the configuration.
  void allocate();

 private:
  void run(const detail::ModelPlan& plan, const detail::ModelInputs& inputs, const detail::EncoderBuffers& buffers, float* logits,
           detail::Scratch& scratch) const;
  void embed_ids(const detail::ModelInputs& inputs, float* x, detail::Scratch& scratch) const;
  /// The tables whose rows are added up for each place. positions gets what they refer to.
  std::vector<detail::EmbeddingRows> embedding_rows(const detail::ModelInputs& inputs, std::vector<std::int64_t>& positions) const;
  /// Row of the position table for each id of one sequence.
  void position_rows(std::span<const std::int64_t> ids, std::int64_t* rows) const;
  /// What scores get of positions, as far as the longest sequence goes; nothing where the model has nothing of the kind. With `random` it is for a
  /// backward, with that dropout.
  detail::ScorePositions score_positions(const detail::ModelInputs& inputs, detail::Scratch& scratch,
                                         const detail::ForwardRandom* random = nullptr) const;
  /// Sets layers of the positions. They follow from weights alone: without `random` they are computed once, until weights may change.
  void add_relative_layers(detail::ScorePositions& positions, detail::Scratch& scratch, const detail::ForwardRandom* random) const;
  /// Numbers of a layer's keys of positions, packed.
  std::size_t packed_positions() const;
  /// Rows of embeddings of padding become 0.
  void clear_padding(const detail::ModelInputs& inputs, float* x) const;

  detail::ModelConfig config_;
  Embedding words_;
  detail::Table positions_, token_types_, task_types_;  // (rows,W), or empty
  detail::Norm embedding_norm_;
  std::optional<detail::Linear> embedding_projection_;  // (E,W), where tables are of another width than the rest
  TransformerEncoder encoder_;
  std::vector<float> position_bias_;  // (buckets,H), or empty
  detail::Table relative_;            // (rows,E), or empty
  detail::Norm relative_norm_ = detail::Norm::identity(0);
  mutable detail::Published<detail::RelativeLayers> relative_layers_;
  // What follows the pooling of an embedding, where there is something.
  std::optional<detail::Linear> embedding_dense_;
  detail::Head head_;  // where there is one
  bool is_quantized_ = false;
  bool is_head_new_ = false;
  std::vector<detail::CheckpointTensor> tensors_;
  mutable detail::Workspace workspace_;
};

}  // namespace attn
