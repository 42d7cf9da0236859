#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "attn/ops/attention.hpp"
#include "attn/ops/init.hpp"
#include "attn/ops/linear.hpp"
#include "attn/tensor/tensor.hpp"

namespace attn {

struct MultiHeadAttentionOptions {
  std::int64_t embed_dim = 0;
  std::int64_t num_heads = 0;
  std::optional<std::int64_t> kdim = std::nullopt;  ///< width of key, default embed_dim
  std::optional<std::int64_t> vdim = std::nullopt;  ///< width of value, default embed_dim
  bool bias = true;
  std::optional<float> scale = std::nullopt;  ///< default 1/√(embed_dim / num_heads); a call's own goes first
  bool out_proj = true;                       ///< false: the output is the heads side by side, there is no W_O
};

/// Concat(head_1 .. head_H) W_Oᵀ + b_O, head_h = attention(q W_Qᵀ + b_Q, k W_Kᵀ + b_K, v W_Vᵀ + b_V)
/// (Vaswani et al. 2017, section 3.2.2; torch.nn.MultiheadAttention, batch first)
///
/// State, torch's names: in_proj_weight (3E,E), or q_proj_weight (E,E), k_proj_weight (E,kdim), v_proj_weight (E,vdim) where
/// kdim or vdim differ from E; in_proj_bias (3E); out_proj.weight (E,E), out_proj.bias (E). Also accepted:
/// q_proj.weight, k_proj.weight, v_proj.weight and their .bias.
class MultiHeadAttention {
 public:
  /// Weights as torch's constructor would draw them, from seed 0. Throws CONFIG, MEMORY.
  explicit MultiHeadAttention(const MultiHeadAttentionOptions& options);

  /// query (B,L,E), key (B,S,kdim), value (B,S,vdim) -> output (B,L,E), weights (B,H,L,S).
  /// Without B (rank 2) nothing has it, as in torch. key and value default to query.
  /// Throws SHAPE, MASK, CONFIG, MEMORY.
  template <TensorLike Q>
  auto forward(const Q& query, const AttentionOptions& options = {}) const {
    return forward(query, query, query, options);
  }
  template <TensorLike Q, TensorLike K, TensorLike V>
  auto forward(const Q& query, const K& key, const V& value, const AttentionOptions& options = {}) const {
    constexpr std::size_t N = kRankOf<Q>;
    static_assert(N == 2 || N == 3, "query is (B,L,E) or (L,E)");
    const TensorView q = view_of(query, "MultiHeadAttention", "query"), k = view_of(key, "MultiHeadAttention", "key"),
                     v = view_of(value, "MultiHeadAttention", "value");
    const detail::AttentionPlan plan = this->plan(q, k, v, options);
    return detail::run_attention_plan<N, N + 1>(plan, [&](const detail::AttentionBuffers& buffers) { run(plan, q, k, v, options, buffers); });
  }

  /// strict: every parameter must be there and nothing else; else missing ones keep their numbers and unknown ones are
  /// ignored. Throws MISMATCH, which lists all missing, unexpected and mis-shaped names; nothing is changed then.
  void load_state_dict(const StateDict& state, bool strict = true);
  /// The form that torch would have.
  StateDict state_dict() const;
  void initialize(const InitOptions& options = {});

  std::int64_t parameter_count() const;
  /// By the names of state_dict().
  std::map<std::string, Shape> parameter_shapes() const;

  /// For callers that own the memory: everything checked, then the work itself.
  detail::AttentionPlan plan(const TensorView& query, const TensorView& key, const TensorView& value, const AttentionOptions& options) const;
  void run(const detail::AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
           const AttentionOptions& options, const detail::AttentionBuffers& buffers) const;

 private:
  struct Projection {
    PackedLinear linear;
    std::int64_t out = 0, in = 0;
  };

  bool packed_form() const { return key_.in == embed_dim_ && value_.in == embed_dim_; }

  std::int64_t embed_dim_, num_heads_;
  bool bias_, has_out_proj_;
  std::optional<float> scale_;
  Projection query_, key_, value_, out_;
};

}  // namespace attn
