#pragma once

#include <optional>

#include "attn/ops/attention.hpp"

namespace attn {

namespace detail {

/// Tensors of additive attention; bias.data is null where there is none.
struct AdditiveParams {
  TensorView query_weight, key_weight, score_weight, bias;
};

AttentionPlan plan_additive_attention(const TensorView& query, const TensorView& key, const TensorView& value, const AdditiveParams& params,
                                      const AttentionOptions& options);
void additive_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                        const AdditiveParams& params, const AttentionOptions& options, const AttentionBuffers& buffers);

AttentionPlan plan_general_attention(const TensorView& query, const TensorView& key, const TensorView& value, const TensorView& weight,
                                     const AttentionOptions& options);
void general_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const TensorView& weight,
                       const AttentionOptions& options, const AttentionBuffers& buffers);

}  // namespace detail

/// What the scores of additive attention are made of.
template <std::size_t N>
struct AdditiveAttentionWeights {
  TensorOf<N> query_weight;                            ///< (A,Dq)
  TensorOf<N> key_weight;                              ///< (A,Dk)
  TensorOf<N - 1> score_weight;                        ///< (A)
  std::optional<TensorOf<N - 1>> bias = std::nullopt;  ///< (A), default none
};
using AdditiveAttentionParams = AdditiveAttentionWeights<2>;

/// softmax(score · scale + mask) v, score_ij = score_weight · tanh(query_weight q_i + key_weight k_j + bias)   (Bahdanau et al. 2015, appendix A.1.2)
/// q (..,L,Dq), k (..,S,Dk), v (..,S,Dv) of rank 2, 3 (B) or 4 (B,H) -> output (..,L,Dv), weights (..,L,S), all of that rank.
/// Options and traces are those of scaled_dot_product_attention; scale defaults to 1.
/// Throws SHAPE when widths, heads, batches or lengths disagree, MASK, CONFIG, MEMORY.
template <TensorLike Q, TensorLike K, TensorLike V>
auto additive_attention(const Q& query, const K& key, const V& value, const AdditiveAttentionParams& weights, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "additive_attention";
  // Dependent, for xtensor may not be there yet.
  const AdditiveAttentionWeights<N == 0 ? 0 : 2>& params = weights;
  const detail::Input q(query, op, "query");
  const detail::Input k(key, op, "key");
  const detail::Input v(value, op, "value");
  const detail::Input query_weight(params.query_weight, op, "query_weight");
  const detail::Input key_weight(params.key_weight, op, "key_weight");
  const detail::Input score_weight(params.score_weight, op, "score_weight");
  detail::AdditiveParams views{query_weight, key_weight, score_weight, {}};
  if (params.bias) views.bias = {params.bias->data(), to_shape(params.bias->shape())};
  const detail::AttentionPlan plan = detail::plan_additive_attention(q, k, v, views, options);
  return detail::run_attention_plan<N, N>(
      plan, [&](const detail::AttentionBuffers& buffers) { detail::additive_attention(plan, q, k, v, views, options, buffers); });
}

/// softmax(q weight kᵀ · scale + mask) v                                            (Luong et al. 2015, section 3.1, "general")
/// q (..,L,Dq), k (..,S,Dk), v (..,S,Dv), weight (Dq,Dk) -> as scaled_dot_product_attention, whose options and traces it takes; scale
/// defaults to 1. With the identity as weight and a scale of 1 it is Luong's "dot".
/// Throws SHAPE when widths, heads, batches or lengths disagree, MASK, CONFIG, MEMORY.
template <TensorLike Q, TensorLike K, TensorLike V, TensorLike W>
auto general_attention(const Q& query, const K& key, const V& value, const W& weight, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "general_attention";
  const detail::Input q(query, op, "query");
  const detail::Input k(key, op, "key");
  const detail::Input v(value, op, "value");
  const detail::Input w(weight, op, "weight");
  const detail::AttentionPlan plan = detail::plan_general_attention(q, k, v, w, options);
  return detail::run_attention_plan<N, N>(
      plan, [&](const detail::AttentionBuffers& buffers) { detail::general_attention(plan, q, k, v, w, options, buffers); });
}

}  // namespace attn
