#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/linear.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/rotary.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {

/// Disentangled attention (He et al. 2020): besides q kᵀ, which parts scores have of the embeddings of relative
/// positions.
struct Disentangled {
  bool c2p = false, p2c = false;
  bool shares_projections = false;  ///< embeddings go through W_K and W_Q; else each through a map of its own
  std::int64_t scale_factor = 1;    ///< the scale is 1/√(D · scale_factor)

  bool any() const { return c2p || p2c; }
};

/// What holds in every call of a layer, unless the call says otherwise.
struct AttentionDefaults {
  float softcap = 0;
  Window window = {};
  Rotary rotary = {};
  Disentangled disentangled = {};
  bool queries_are_padded = false;  ///< as AttentionSpec
};

/// What a caller changes before W_O; null: nothing.
struct MergedPatch {
  const float* head_mask = nullptr;  ///< (H), what the result of each head is multiplied by
  const float* values = nullptr;     ///< (B,L,H·Dv), instead of the heads' results
};

}  // namespace detail

struct MultiHeadAttentionOptions {
  std::int64_t embed_dim = 0;                                      ///< E, the width of query and output
  std::int64_t num_heads = 0;                                      ///< H
  std::optional<std::int64_t> num_key_value_heads = std::nullopt;  ///< Hkv, a divisor of H: each is shared by H / Hkv query heads; default H
  std::optional<std::int64_t> kdim = std::nullopt;                 ///< width of key, default E
  std::optional<std::int64_t> vdim = std::nullopt;                 ///< width of value, default E
  std::optional<std::int64_t> head_dim = std::nullopt;             ///< D, default E / H
  std::optional<std::int64_t> value_head_dim = std::nullopt;       ///< Dv, default D
  bool bias = true;                                                ///< on all projections
  bool add_bias_kv = false;                                        ///< one more key and value, learned
  bool add_zero_attn = false;                                      ///< one more key and value, zero
  float dropout = 0;                                               ///< on the weights, in [0,1); in training only
  std::optional<float> scale = std::nullopt;                       ///< default 1/√D; a call's own goes first
  bool out_proj = true;                                            ///< false: the output is the heads side by side (B,L,H·Dv), there is no W_O
  std::optional<RotaryOptions> rotary = std::nullopt;              ///< turns queries and keys, once projected, as apply_rotary; D has to be even
};

struct BackwardOptions {
  Trace trace = {};  ///< gradients of these intermediate results, by the names and of the shapes of the forward's trace
};

/// N: rank of the query.
template <std::size_t N>
struct MultiHeadAttentionGradients {
  TensorOf<N> grad_query;                                                            ///< of all three where key and value were left to be the query
  std::optional<TensorOf<N>> grad_key = std::nullopt, grad_value = std::nullopt;     ///< where they were given
  std::optional<std::map<TraceName, TensorOf<kAnyBeside<N>>>> trace = std::nullopt;  ///< when a trace was asked for
};

namespace detail {

class KeptAttentionCall;
class KeptPlaces;
struct KeptAttention;

/// Where a backward's results go; null where not asked for.
struct MultiHeadAttentionGradientBuffers {
  float *grad_query = nullptr, *grad_key = nullptr, *grad_value = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
  float* position_bias = nullptr;  ///< (H,row) as PositionBias has it: added to
  float* relative = nullptr;       ///< (count,E), of RelativePositions::x: added to
};

/// All of a backward that follows from its forward and the gradient's shape, checked.
struct MultiHeadAttentionBackwardPlan {
  Shape query, key, value;  ///< key and value only where they were given
  bool has_key_and_value = false;
  AttentionPlan attention;  ///< with the traces asked for
};

/// Allocates what the plan says and lets run(buffers) fill it.
template <std::size_t N, class Run>
MultiHeadAttentionGradients<N> run_multi_head_attention_backward_plan(const MultiHeadAttentionBackwardPlan& plan, Run run) {
  MultiHeadAttentionGradients<N> result{empty<N>(plan.query)};
  MultiHeadAttentionGradientBuffers to{.grad_query = result.grad_query.data()};
  if (plan.has_key_and_value) {
    to.grad_key = result.grad_key.emplace(empty<N>(plan.key)).data();
    to.grad_value = result.grad_value.emplace(empty<N>(plan.value)).data();
  }
  if (plan.attention.spec.trace.any()) {
    auto& trace = result.trace.emplace();
    for (std::size_t i = 0; i < plan.attention.trace_shapes.size(); ++i)
      if (const auto name = static_cast<TraceName>(i); plan.attention.spec.trace.has(name))
        to.trace[i] = trace.emplace(name, empty<kAnyBeside<N>>(plan.attention.trace_shapes[i])).first->second.data();
  }
  run(to);
  return result;
}

}  // namespace detail

/// Multi-head attention: Concat(head_1 .. head_H) W_Oᵀ + b_O with head_h = attention(q W_Qᵀ + b_Q, k W_Kᵀ + b_K, v
/// W_Vᵀ + b_V). Weights, names and shapes are those of torch.nn.MultiheadAttention with batch_first (Vaswani et al.
/// 2017, section 3.2.2; grouped heads: Ainslie et al. 2023).
///
/// State, torch's names: in_proj_weight (3E,E), or q_proj_weight (E,E), k_proj_weight (E,kdim), v_proj_weight
/// (E,vdim) if kdim or vdim differ from E; in_proj_bias (3E); bias_k (1,1,Hkv·D), bias_v (1,1,Hkv·Dv);
/// out_proj.weight (E,H·Dv), out_proj.bias (E). If heads have their own widths or numbers: q_proj.weight (H·D,E),
/// k_proj.weight (Hkv·D,kdim), v_proj.weight (Hkv·Dv,vdim) and their .bias; this form is always accepted.
/// @code
/// attn::MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
/// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 8});
/// auto [output, weights, trace, present] = layer.forward(x, {.need_weights = true});
/// std::cout << (*weights)(0, 0, 0, 1);  // 0.333333
/// @endcode
class MultiHeadAttention : public Module<MultiHeadAttention> {
 public:
  /// Draws weights as torch's constructor does, from seed 0.
  ///
  /// @throws CONFIG if widths or numbers of heads do not fit together
  /// @throws MEMORY if the weights exceed the memory limit
  explicit MultiHeadAttention(const MultiHeadAttentionOptions& options);

  /// Computes attention of a query, key and value; key and value default to the query.
  ///
  /// @param query    (B,L,E), or (L,E): without a batch nothing has one, as in torch
  /// @param key      (B,S,kdim)
  /// @param value    (B,S,vdim)
  /// @param options  as scaled_dot_product_attention. A past (B,Hkv,P,D), (B,Hkv,P,Dv) is the present of an earlier
  /// call: its keys come first (S counts them), new ones have positions from P on, and L positions one by one give
  /// the results of all at once
  /// @return output (B,L,E), weights (B,H,L,S), trace, present; add_bias_kv and add_zero_attn each add one to S
  /// @throws SHAPE if batches, lengths or widths disagree
  /// @throws MASK if a mask does not fit or holds NaN or +infinity
  /// @throws CONFIG if an option is outside its range
  /// @throws UNSUPPORTED for a past with add_bias_kv or add_zero_attn, whose keys come last
  /// @throws MEMORY if the call would exceed the memory limit
  template <TensorLike Q>
  auto forward(const Q& query, const AttentionOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<Q>;
    static_assert(N == 2 || N == 3, "query is (B,L,E) or (L,E)");
    const detail::Input x(query, "MultiHeadAttention", "query");
    return run_views<N>(x, x, x, options);
  }
  template <TensorLike Q, TensorLike K, TensorLike V>
  auto forward(const Q& query, const K& key, const V& value, const AttentionOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<Q>;
    static_assert(N == 2 || N == 3, "query is (B,L,E) or (L,E)");
    const detail::Input q(query, "MultiHeadAttention", "query");
    const detail::Input k(key, "MultiHeadAttention", "key");
    const detail::Input v(value, "MultiHeadAttention", "value");
    return run_views<N>(q, k, v, options);
  }

  /// Computes gradients of the last forward that had for_backward or ran in train mode, and adds those of the
  /// parameters to gradients(). It uses up what that forward saved: copies of inputs and masks, q, k, v and the
  /// merged heads. Probabilities are computed again, so without a trace nothing is as large as (B,H,L,S). Any number
  /// of threads gives the same bits. Masked keys and queries without keys are treated as by
  /// scaled_dot_product_attention_backward; rows whose gradient is 0 take no part in any gradient, whatever they
  /// hold.
  /// Traces: those of the forward.
  ///
  /// @param grad     gradient of the output, its shape
  /// @param options  which intermediates to return gradients of
  /// @return {grad_query, grad_key, grad_value, trace}; key and value only if they were given
  /// @throws UNSUPPORTED for an int8 layer
  /// @throws ARGUMENT if there was no such forward since the last backward or since weights changed
  /// @throws SHAPE if grad does not have the shape of the output
  /// @throws MEMORY if the call would exceed the memory limit; nothing has changed after an error
  /// @see torch.autograd of torch.nn.MultiheadAttention
  ///
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  /// xt::xtensor<float, 3> x = xt::ones<float>({1, 2, 4});
  /// auto result = layer.forward(x, {.for_backward = true});
  /// layer.backward(result.output);
  /// std::cout << layer.gradients().count("in_proj_weight");  // 1
  /// @endcode
  template <TensorLike G>
  auto backward(const G& grad, const BackwardOptions& options = {}) {
    constexpr std::size_t N = kRankOf<G>;
    static_assert(N == 2 || N == 3, "grad is (B,L,E) or (L,E)");
    const detail::Input view(grad, "MultiHeadAttention", "grad");
    const detail::MultiHeadAttentionBackwardPlan plan = plan_backward(view, options);
    return detail::run_multi_head_attention_backward_plan<N>(
        plan, [&](const detail::MultiHeadAttentionGradientBuffers& to) { run_backward(plan, view, to); });
  }

  /// For callers that own the memory: everything checked, then the work itself.
  detail::MultiHeadAttentionBackwardPlan plan_backward(const TensorView& grad, const BackwardOptions& options) const;
  void run_backward(const detail::MultiHeadAttentionBackwardPlan& plan, const TensorView& grad, const detail::MultiHeadAttentionGradientBuffers& to);
  detail::AttentionPlan plan(const TensorView& query, const TensorView& key, const TensorView& value, const AttentionOptions& options) const;
  void run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
           const AttentionOptions& options, const detail::AttentionBuffers& buffers) const;

  bool is_quantized() const { return query_.is_quantized(); }

 private:
  template <std::size_t N>
  auto run_views(const TensorView& query, const TensorView& key, const TensorView& value, const AttentionOptions& options) const {
    const detail::AttentionPlan plan = this->plan(query, key, value, options);
    return detail::run_attention_plan<N, N + 1>(plan,
                                                [&](const detail::AttentionBuffers& buffers) { run(plan, query, key, value, options, buffers); });
  }

  friend class Module<MultiHeadAttention>;
  friend class TransformerEncoderLayer;
  friend class TransformerEncoder;
  friend class EncoderModel;

  MultiHeadAttention(detail::Uninitialized, const MultiHeadAttentionOptions& options, detail::AttentionDefaults defaults = {});
  void add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const;
  void save(const std::string& prefix, const StateTarget& target) const;
  MultiHeadAttention loaded(const std::string& prefix, const StateView& state) const;
  MultiHeadAttention drawn(const InitOptions& options, std::uint32_t& parameter) const;
  void make_int8();
  /// Names where its numbers will be, in the separate form.
  void add_parameters(const std::string& prefix, detail::Parameters& parameters);
  /// The names without parts of scores that it does not have; where they are not just everything that there is, those
  /// are ARGUMENT.
  Trace available_parts(std::string_view op, Trace asked) const;
  /// Before there are numbers.
  void set_defaults(detail::AttentionDefaults defaults);
  /// Embeddings of relative positions (rows,E) -> what the core takes of them: keys, packed, and queries (rows,H·D),
  /// and keys as they are.
  void project_positions(const float* x, std::int64_t rows, float* key_panels, float* queries, float* keys, detail::Scratch& scratch) const;
  /// Gradients of project_positions() from those of its keys and queries, added to what W_K and W_Q have where they
  /// share those.
  void project_positions_backward(const detail::RelativePositions& relative, const float* of_keys, const float* of_queries, const std::string& prefix,
                                  detail::Gradients& gradients, float* of_x, detail::Scratch& scratch) const;

  /// plan() in the name of another layer, which checks the memory when it has added its own. runs as in AttentionSpec.
  detail::AttentionPlan plan(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, std::span<const detail::SequenceRun> runs, MemoryEstimate& memory) const;
  /// Length of a past, which has to fit.
  std::int64_t check_past(std::string_view op, const KeyValueView& past, std::size_t rank, std::int64_t B) const;
  /// What the call leaves open is the layer's own.
  detail::AttentionSpec of_layer(const detail::AttentionSpec& call) const;
  void rotate(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, std::span<const detail::SequenceRun> runs, float* q_proj,
              float* k_proj, detail::Scratch& scratch) const;
  /// What a run takes besides its inputs.
  struct Run {
    detail::Dropout dropout = {};
    std::optional<KeyValueView> past = std::nullopt;
    detail::PositionBias position_bias = {};
    detail::MergedPatch patch = {};
    const parallel::TaskRef* finish_row = nullptr;  ///< called for each row of the output when it is written; it may change it
  };
  void run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const Run& run,
           const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const;

  struct Kept;
  void run_for_backward(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const Run& run,
                        const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const;
  /// Numbers of q, k, v and merged that a forward of these sizes leaves for backward.
  std::size_t kept_size(const detail::AttentionSizes& sizes) const;
  /// Gives kept places for them, the first of which is at `to`; gives the end.
  float* place_kept(const detail::AttentionSizes& sizes, detail::KeptAttention& kept, float* to) const;
  /// A run with these traces leaves them there.
  void keep(const detail::AttentionSizes& sizes, const detail::KeptAttention& kept, std::array<float*, kTraceNames.size()>& trace,
            detail::KeptPlaces& places) const;
  /// Adds what the other backward takes.
  void add_backward_memory(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, MemoryEstimate& memory) const;
  /// grad (B·L,E). Gradients of parameters go where `gradients` has room, those of inputs into grad_query, grad_key
  /// and grad_value; where key and value are the query all three are added up in grad_query. With runs there are no
  /// traces of (L,S).
  void backward(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const detail::KeptAttention& kept, const float* grad,
                const std::string& prefix, detail::Gradients& gradients, const detail::MultiHeadAttentionGradientBuffers& to,
                detail::Scratch& scratch) const;

  /// How the projections are spelled in a state.
  enum class Form : std::uint8_t { packed, split, separate };
  /// torch's own.
  Form form() const;
  /// That of a state, as its names tell.
  Form form_of(const std::string& prefix, const StateView& state) const;

  MultiHeadAttentionOptions options_;
  detail::AttentionDefaults defaults_;
  std::int64_t H_, Hkv_, D_, Dv_;
  detail::Linear query_, key_, value_, out_;
  detail::Linear position_key_, position_query_;  // of disentangled attention that shares none
  std::vector<float> bias_k_, bias_v_;            // (Hkv·D), (Hkv·Dv), or empty
};

}  // namespace attn
