#pragma once

#include <optional>

#include "attn/ops/attention.hpp"

namespace attn {

namespace detail {

/// Views of the parameters of additive attention; bias.data is null if there is no bias.
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

/// Parameters of additive attention.
template <std::size_t N>
struct AdditiveAttentionWeights {
  TensorOf<N> query_weight;                            ///< (A,Dq)
  TensorOf<N> key_weight;                              ///< (A,Dk)
  TensorOf<N - 1> score_weight;                        ///< (A)
  std::optional<TensorOf<N - 1>> bias = std::nullopt;  ///< (A), default none
};
using AdditiveAttentionParams = AdditiveAttentionWeights<2>;

/// Computes additive attention, softmax(score · scale + mask) v with score_ij = score_weight · tanh(query_weight q_i
/// + key_weight k_j + bias).
///
/// @param query    (..,L,Dq) of rank 2, 3 (B) or 4 (B,H)
/// @param key      (..,S,Dk)
/// @param value    (..,S,Dv)
/// @param weights  query_weight (A,Dq), key_weight (A,Dk), score_weight (A), bias (A) or none
/// @param options  as scaled_dot_product_attention; scale defaults to 1
/// @return as scaled_dot_product_attention
/// @throws SHAPE if widths, heads, batches or lengths disagree
/// @throws MASK, CONFIG, MEMORY as scaled_dot_product_attention
/// @see Bahdanau et al. 2015, appendix A.1.2
///
/// @code
/// xt::xtensor<float, 2> q{{1}}, k{{0}, {0}}, v{{1}, {3}};
/// attn::AdditiveAttentionParams weights{.query_weight = {{1}}, .key_weight = {{1}}, .score_weight = {1}};
/// std::cout << attn::additive_attention(q, k, v, weights).output;  // {{ 2.}}
/// @endcode
template <TensorLike Q, TensorLike K, TensorLike V>
auto additive_attention(const Q& query, const K& key, const V& value, const AdditiveAttentionParams& weights, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "additive_attention";
  // Dependent on N, because xtensor may not be included yet.
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

/// Computes Luong's general attention, softmax(q weight kᵀ · scale + mask) v. With the identity as weight it is
/// Luong's "dot".
///
/// @param query    (..,L,Dq) of rank 2, 3 (B) or 4 (B,H)
/// @param key      (..,S,Dk)
/// @param value    (..,S,Dv)
/// @param weight   (Dq,Dk)
/// @param options  as scaled_dot_product_attention; scale defaults to 1
/// @return as scaled_dot_product_attention
/// @throws SHAPE if widths, heads, batches or lengths disagree
/// @throws MASK, CONFIG, MEMORY as scaled_dot_product_attention
/// @see Luong et al. 2015, section 3.1
///
/// @code
/// xt::xtensor<float, 2> q{{1, 0}}, k{{1, 0}, {1, 0}}, v{{1}, {3}}, weight{{2, 0}, {0, 2}};
/// std::cout << attn::general_attention(q, k, v, weight).output;  // {{ 2.}}
/// @endcode
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
