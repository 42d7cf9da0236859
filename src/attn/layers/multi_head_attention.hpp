#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/layer_variant.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/layers/rotary_layer.hpp"
#include "attn/memory/key_value_cache.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {

class Stack;  // models/stack.hpp

/// Disentangled attention (He et al. 2020): which terms with embeddings of relative positions are added to the scores
/// q kᵀ.
struct Disentangled {
  bool c2p = false, p2c = false;
  bool shares_projections = false;  ///< embeddings are projected by W_K and W_Q, otherwise by separate maps
  std::int64_t scale_factor = 1;    ///< the scale is 1/√(D · scale_factor)

  bool any() const { return c2p || p2c; }
};

/// Settings of a layer that apply to every call unless the call overrides them.
struct AttentionDefaults {
  float softcap = 0;
  Window window = {};
  Rotary rotary = {};
  Disentangled disentangled = {};
  bool queries_are_padded = false;  ///< as in AttentionSpec
};

/// Changes that a caller makes before W_O; null for none.
struct AttentionPatch {
  const float* head_mask = nullptr;  ///< (H), factor for the result of each head
  const float* values = nullptr;     ///< (B,L,H·Dv), replaces the heads' results
  /// (B,L,H·D), (B,S,Hkv·D) and (B,S,Hkv·Dv) of the call's own tokens; replace the projections before head norms and RoPE.
  const float *q_proj = nullptr, *k_proj = nullptr, *v_proj = nullptr;
  const float* weights = nullptr;  ///< (B,H,L,S), replaces the attention weights; without a cache only
};

}  // namespace detail

/// Options for the constructor of MultiHeadAttention.
struct MultiHeadAttentionOptions {
  std::int64_t embed_dim = 0;                                      ///< E, the width of query and output
  std::int64_t num_heads = 0;                                      ///< H
  std::optional<std::int64_t> num_key_value_heads = std::nullopt;  ///< Hkv, a divisor of H: each is shared by H / Hkv query heads; default H
  std::optional<std::int64_t> kdim = std::nullopt;                 ///< width of key, default E
  std::optional<std::int64_t> vdim = std::nullopt;                 ///< width of value, default E
  std::optional<std::int64_t> head_dim = std::nullopt;             ///< D, default E / H
  std::optional<std::int64_t> value_head_dim = std::nullopt;       ///< Dv, default D
  bool bias = true;                                                ///< on all projections
  bool add_bias_kv = false;                                        ///< append a learned key and value
  bool add_zero_attn = false;                                      ///< append a zero key and value
  float dropout = 0;                                               ///< of attention weights, in [0,1); in training only
  std::optional<float> scale = std::nullopt;                       ///< default 1/√D; a call's own scale takes precedence
  bool out_proj = true;                                            ///< false: no W_O, the output is the concatenated heads (B,L,H·Dv)
  std::optional<RotaryOptions> rotary = std::nullopt;              ///< rotates projected queries and keys as apply_rotary; D must be even
};

/// Options for MultiHeadAttention::backward().
struct BackwardOptions {
  Trace trace = {};  ///< intermediate results whose gradients to return, with the names and shapes of the forward's trace
};

/// Result of MultiHeadAttention::backward(). N: rank of the query.
template <std::size_t N>
struct MultiHeadAttentionGradients {
  TensorOf<N> grad_query;                                                            ///< sum for all three if key and value default to the query
  std::optional<TensorOf<N>> grad_key = std::nullopt, grad_value = std::nullopt;     ///< only if given
  std::optional<std::map<TraceName, TensorOf<kAnyBeside<N>>>> trace = std::nullopt;  ///< on request
};

namespace detail {

class KeptAttentionCall;
class CaptureBuffers;
struct KeptAttention;

/// Destinations of a backward's results; null if not requested.
struct MultiHeadAttentionGradientBuffers {
  float *grad_query = nullptr, *grad_key = nullptr, *grad_value = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
  float* position_bias = nullptr;  ///< (H,row) in the layout of PositionBias, accumulated
  float* relative = nullptr;       ///< (count,E), of RelativePositions::x, accumulated
};

/// Everything about a backward that follows from its forward and the gradient's shape, checked.
struct MultiHeadAttentionBackwardPlan {
  Shape query, key, value;  ///< key and value only if given
  bool has_key_and_value = false;
  AttentionPlan attention;  ///< with the requested traces
};

/// Allocates the results that the plan specifies and lets run(buffers) fill them.
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
/// out_proj.weight (E,H·Dv), out_proj.bias (E). If H·D, Hkv·D or Hkv·Dv differ from E: q_proj.weight (H·D,E),
/// k_proj.weight (Hkv·D,kdim), v_proj.weight (Hkv·Dv,vdim) and their .bias; this form is always accepted.
/// @code
/// attn::MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
/// xt::xtensor<float, 3> x = xt::ones<float>({1, 3, 8});
/// auto [output, weights, trace, present] = layer.forward(x, {.need_weights = true});
/// std::cout << (*weights)(0, 0, 0, 1);  // 0.333333
/// @endcode
class MultiHeadAttention : public Module {
 public:
  /// Draws weights as torch's constructor does, from seed 0.
  ///
  /// @throws CONFIG if widths or numbers of heads do not fit together
  /// @throws MEMORY if the weights exceed the memory limit
  ///
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 8, .num_heads = 4, .num_key_value_heads = 2});
  /// std::cout << to_string(layer.parameter_shapes().at("k_proj.weight"));  // (4,8)
  /// @endcode
  explicit MultiHeadAttention(const MultiHeadAttentionOptions& options);

  /// Computes attention of a query, key and value; key and value default to the query.
  ///
  /// @param query    (B,L,E), or (L,E): then no input or result has a batch dimension, as in torch
  /// @param key      (B,S,kdim)
  /// @param value    (B,S,vdim)
  /// @param options  as in scaled_dot_product_attention. past (B,Hkv,P,D), (B,Hkv,P,Dv) is the key/value cache that an
  /// earlier call returned as present: its keys come first and count towards S, new tokens have positions from P on,
  /// and L tokens one by one give the same results as all at once
  /// @return output (B,L,E), weights (B,H,L,S), trace, present; add_bias_kv and add_zero_attn each add one to S
  /// @throws SHAPE if batches, lengths or widths disagree
  /// @throws MASK if a mask does not fit or holds NaN or +infinity
  /// @throws CONFIG if an option is outside its range
  /// @throws ARGUMENT if `trace` has a name that the computation does not have
  /// @throws UNSUPPORTED if a layer with add_bias_kv or add_zero_attn, whose keys come last, is given a past
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2, .kdim = 3, .vdim = 3});
  /// xt::xtensor<float, 3> query = xt::ones<float>({1, 2, 4}), memory = xt::ones<float>({1, 5, 3});
  /// const auto result = layer.forward(query, memory, memory, {.need_weights = true});
  /// std::cout << (*result.weights)(0, 0, 0, 0);  // 0.2
  /// @endcode
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
  /// parameters to gradients(). It consumes the data that this forward saved: copies of inputs and masks, q, k, v
  /// and the merged heads. Attention weights are recomputed, so without a trace no buffer is as large as (B,H,L,S).
  /// Results have the same bits for any number of threads. Masked keys and queries without keys are treated as in
  /// scaled_dot_product_attention_backward; rows whose gradient is 0 do not contribute to any gradient, whatever
  /// values they hold. The traces are those of the forward.
  ///
  /// @param grad     gradient of the output, with the output's shape
  /// @param options  intermediate results whose gradients to return
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

  /// Checks a forward whose results go to the caller's memory.
  ///
  /// @param query,key,value  as in forward(); the same object three times for self-attention
  /// @param options          as in forward(); the plan refers to its masks
  /// @return the plan for run(), with the shapes of the results: output, weights, present_key, present_value, trace_shapes
  /// @throws SHAPE, MASK, CONFIG, ARGUMENT, UNSUPPORTED, MEMORY as forward()
  ///
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  /// const std::vector<float> numbers(2 * 4, 1);
  /// std::vector<float> output(2 * 4), grad_query(2 * 4);
  /// const attn::TensorView x(numbers.data(), {2, 4}), grad(output.data(), {2, 4});
  /// const attn::AttentionOptions options{.for_backward = true};
  /// const auto plan = layer.plan(x, x, x, options);
  /// layer.run(plan, x, x, x, options, {.output = output.data()});
  /// layer.run_backward(layer.plan_backward(grad, {}), grad, {.grad_query = grad_query.data()});
  /// std::cout << to_string(plan.output) << ' ' << layer.gradients().size();  // (2,4) 4
  /// @endcode
  detail::AttentionPlan plan(const TensorView& query, const TensorView& key, const TensorView& value, const AttentionOptions& options) const;
  /// Computes a forward that plan() has checked; plan() has an example.
  ///
  /// @param plan                     result of plan() for the same inputs and options
  /// @param query,key,value,options  those given to plan()
  /// @param buffers                  memory for output and for each requested result, row-major: weights, present_key,
  /// present_value, and trace by the number of its TraceName
  void run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
           const AttentionOptions& options, const detail::AttentionBuffers& buffers) const;
  /// Checks a backward whose results go to the caller's memory; plan() has an example.
  ///
  /// @param grad     gradient of the output of the last run() that had for_backward or ran in train mode
  /// @param options  as in backward()
  /// @return the plan for run_backward(), with the shapes query, key and value
  /// @throws UNSUPPORTED, ARGUMENT, SHAPE, MEMORY as backward()
  detail::MultiHeadAttentionBackwardPlan plan_backward(const TensorView& grad, const BackwardOptions& options) const;
  /// Computes a backward that plan_backward() has checked, and adds the gradients of the parameters to gradients(); plan()
  /// has an example.
  ///
  /// @param plan  result of plan_backward()
  /// @param grad  the one given to plan_backward()
  /// @param to    memory for grad_query and requested traces; without self-attention also for grad_key and grad_value
  void run_backward(const detail::MultiHeadAttentionBackwardPlan& plan, const TensorView& grad, const detail::MultiHeadAttentionGradientBuffers& to);

  bool is_quantized() const override { return query_.is_quantized(); }

 private:
  template <std::size_t N>
  auto run_views(const TensorView& query, const TensorView& key, const TensorView& value, const AttentionOptions& options) const {
    const detail::AttentionPlan plan = this->plan(query, key, value, options);
    return detail::run_attention_plan<N, N + 1>(plan,
                                                [&](const detail::AttentionBuffers& buffers) { run(plan, query, key, value, options, buffers); });
  }

  friend class detail::ParameterVisitor;
  friend class TransformerEncoderLayer;
  friend class TransformerEncoder;
  friend class detail::Stack;

  MultiHeadAttention(detail::Uninitialized, const MultiHeadAttentionOptions& options, detail::AttentionDefaults defaults = {});
  void visit_parameters(detail::ParameterVisitor& visitor) override;
  /// Returns the names without score terms that the layer does not have. Throws ARGUMENT for such names unless all
  /// traces are requested.
  Trace available_parts(std::string_view op, Trace asked) const;
  /// Must be called before weights are allocated.
  void set_defaults(detail::AttentionDefaults defaults);
  /// Must be called before weights are allocated.
  void set_variant(const detail::LayerVariant& variant, float eps);
  /// Projects embeddings of relative positions (rows,E) to packed keys, queries (rows,H·D) and unpacked keys, for the
  /// attention core.
  void project_positions(const float* x, std::int64_t rows, float* key_panels, float* queries, float* keys, detail::Scratch& scratch) const;
  /// Computes the gradients of project_positions() from those of its keys and queries. With shared projections they are
  /// added to the gradients of W_K and W_Q.
  void project_positions_backward(const detail::RelativePositions& relative, const float* of_keys, const float* of_queries, const std::string& prefix,
                                  detail::Gradients& gradients, float* of_x, detail::Scratch& scratch) const;

  /// plan() for an enclosing layer, which checks the memory. runs as in AttentionSpec.
  /// `cached`: number of earlier keys in a KeyValueCache.
  detail::AttentionPlan plan(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, std::span<const detail::SequenceGroup> runs, std::int64_t cached = 0) const;
  /// Checks the shape of a past and returns its length.
  std::int64_t check_past(std::string_view op, const KeyValueView& past, std::size_t rank, std::int64_t B) const;
  /// Returns the spec of a call with the layer's defaults filled in.
  detail::AttentionSpec of_layer(const detail::AttentionSpec& call) const;
  void rotate(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, std::span<const detail::SequenceGroup> runs, float* q_proj,
              float* k_proj, detail::Scratch& scratch) const;
  /// Arguments of a run other than its inputs.
  struct Run {
    detail::Dropout dropout = {};
    KeyValueCache* cache = nullptr;
    std::size_t layer = 0;  ///< of the cache
    std::optional<KeyValueView> past = std::nullopt;
    detail::PositionBias position_bias = {};
    detail::AttentionPatch patch = {};
    const parallel::TaskRef* finish_row = nullptr;  ///< called for each row of the output once it is written; may modify the row
  };
  void run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const Run& run,
           const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const;
  // Steps of a run.
  void project(const TensorView& query, const TensorView& key, const TensorView& value, float* q_proj, float* k_proj, float* v_proj,
               detail::Scratch& scratch) const;
  struct KeysAndValues;
  KeysAndValues keys_and_values(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const Run& run, const float* k_proj,
                                const float* v_proj, const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const;
  void attend(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const Run& run, std::span<const detail::SequenceGroup> runs,
              const float* q_proj, const KeysAndValues& all, float* merged, const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const;
  /// Replaces the weights, and what follows from them, by the caller's.
  void attend_with(const float* weights, const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const KeysAndValues& all,
                   float* merged, const detail::AttentionBuffers& buffers) const;
  void project_output(const detail::AttentionPlan& plan, const Run& run, const float* merged, const detail::AttentionBuffers& buffers,
                      detail::Scratch& scratch) const;

  /// run_backward() without its effect on the layer.
  detail::Gradients gradients_of(const detail::MultiHeadAttentionBackwardPlan& plan, const TensorView& grad,
                                 const detail::MultiHeadAttentionGradientBuffers& to) const;
  struct Kept;
  void run_for_backward(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const Run& run,
                        const detail::AttentionBuffers& buffers, detail::Scratch& scratch) const;
  /// Returns how many floats of q, k, v and merged a forward of these sizes saves for backward.
  std::uint64_t kept_size(const detail::AttentionSizes& sizes) const;
  /// Points q, k, v and merged of `kept` to consecutive memory that begins at `to`; returns the end.
  float* place_kept(const detail::AttentionSizes& sizes, detail::KeptAttention& kept, float* to) const;
  /// Makes a run with these traces store q, k, v and merged in `kept`.
  void keep(const detail::AttentionSizes& sizes, const detail::KeptAttention& kept, std::array<float*, kTraceNames.size()>& trace,
            detail::CaptureBuffers& places) const;
  /// grad (B·L,E). Writes the gradients of parameters to `gradients` if it has room for them, and those of inputs to
  /// grad_query, grad_key and grad_value; if key and value are the query, grad_query gets the sum of all three. With
  /// runs there are no traces of shape (L,S).
  void backward(const detail::AttentionSpec& spec, const detail::AttentionSizes& sizes, const detail::KeptAttention& kept, const float* grad,
                const std::string& prefix, detail::Gradients& gradients, const detail::MultiHeadAttentionGradientBuffers& to,
                detail::Scratch& scratch) const;
  class Backward;  // its steps

  /// Names of the projections in a state: in_proj_weight, q_proj_weight or q_proj.weight.
  enum class Form : std::uint8_t { packed, split, separate };
  Form form() const;

  MultiHeadAttentionOptions options_;
  detail::AttentionDefaults defaults_;
  std::int64_t H_, Hkv_, D_, Dv_;
  detail::Linear query_, key_, value_, out_;
  detail::Linear position_key_, position_query_;  // of disentangled attention without shared projections
  std::vector<float> bias_k_, bias_v_;            // (Hkv·D), (Hkv·Dv), or empty
  detail::Norm query_norm_ = detail::Norm::identity(0), key_norm_ = detail::Norm::identity(0);  // of each head's rows
};

}  // namespace attn
