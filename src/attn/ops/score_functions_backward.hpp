#pragma once

#include <optional>

#include "attn/ops/attention_backward.hpp"
#include "attn/ops/score_functions.hpp"

namespace attn {

/// Result of general_attention_backward(). N: rank of the query.
template <std::size_t N>
struct GeneralAttentionGradients : AttentionGradients<N> {
  TensorOf<kBeside<N, 2>> grad_weight;  ///< (Dq,Dk)
};

/// Result of additive_attention_backward(). N: rank of the query.
template <std::size_t N>
struct AdditiveAttentionGradients : AttentionGradients<N> {
  TensorOf<kBeside<N, 2>> grad_query_weight, grad_key_weight;       ///< (A,Dq), (A,Dk)
  TensorOf<kBeside<N, 1>> grad_score_weight;                        ///< (A)
  std::optional<TensorOf<kBeside<N, 1>>> grad_bias = std::nullopt;  ///< (A), if a bias was given
};

namespace detail {

/// Output buffers for the gradients of additive attention's parameters; bias is null if there is no bias.
struct AdditiveGradientBuffers {
  float *query_weight = nullptr, *key_weight = nullptr, *score_weight = nullptr, *bias = nullptr;
};

AttentionPlan plan_additive_attention_backward(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AdditiveParams& params, const AttentionOptions& options);
void additive_attention_backward(const AttentionPlan& plan, const TensorView& grad, const TensorView& query, const TensorView& key,
                                 const TensorView& value, const AdditiveParams& params, const AttentionOptions& options,
                                 const AttentionGradientBuffers& to, const AdditiveGradientBuffers& to_params);

AttentionPlan plan_general_attention_backward(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                                              const TensorView& weight, const AttentionOptions& options);
void general_attention_backward(const AttentionPlan& plan, const TensorView& grad, const TensorView& query, const TensorView& key,
                                const TensorView& value, const TensorView& weight, const AttentionOptions& options,
                                const AttentionGradientBuffers& to, float* grad_weight);

}  // namespace detail

/// Computes the gradients of additive_attention. With t_ij = tanh(query_weight q_i + key_weight k_j + bias), dS as in
/// scaled_dot_product_attention_backward and u_ij = scale · dS_ij · score_weight ∘ (1 - t_ij²): Σⱼ u_ij and Σᵢ u_ij
/// are the gradients of the projected query and key, and grad_score_weight = scale · Σ dS_ij t_ij. With the policy
/// nan, a fully masked query makes grad_query_weight, grad_key_weight, grad_score_weight and grad_bias NaN.
///
/// @param grad     gradient of the output, (..,L,Dv)
/// @param query    as in the forward, like key, value, weights and options
/// @param key      (..,S,Dk)
/// @param value    (..,S,Dv)
/// @param weights  as in the forward
/// @param options  as in the forward
/// @return {grad_query, grad_key, grad_value, grad_query_weight, grad_key_weight, grad_score_weight, grad_bias,
/// trace}
/// @throws SHAPE if grad does not have the shape of the output
/// @throws UNSUPPORTED, MASK, CONFIG, MEMORY as scaled_dot_product_attention_backward
/// @see torch.autograd
///
/// @code
/// xt::xtensor<float, 2> q{{1}}, k{{0}, {0}}, v{{1}, {3}}, grad{{2}};
/// attn::AdditiveAttentionParams weights{.query_weight = {{1}}, .key_weight = {{1}}, .score_weight = {1}};
/// auto gradients = attn::additive_attention_backward(grad, q, k, v, weights);
/// std::cout << gradients.grad_value(0, 0) << ' ' << gradients.grad_score_weight;  // 1 { 0.}
/// @endcode
template <TensorLike G, TensorLike Q, TensorLike K, TensorLike V>
auto additive_attention_backward(const G& grad, const Q& query, const K& key, const V& value, const AdditiveAttentionParams& weights,
                                 const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "additive_attention_backward";
  const AdditiveAttentionWeights<kBeside<N, 2>>& params = weights;
  const detail::Input g(grad, op, "grad");
  const detail::Input q(query, op, "query");
  const detail::Input k(key, op, "key");
  const detail::Input v(value, op, "value");
  const detail::Input query_weight(params.query_weight, op, "query_weight");
  const detail::Input key_weight(params.key_weight, op, "key_weight");
  const detail::Input score_weight(params.score_weight, op, "score_weight");
  detail::AdditiveParams views{query_weight, key_weight, score_weight, {}};
  if (params.bias) views.bias = {params.bias->data(), to_shape(params.bias->shape())};
  const detail::AttentionPlan plan = detail::plan_additive_attention_backward(g, q, k, v, views, options);
  AdditiveAttentionGradients<N> result;
  const detail::AttentionGradientBuffers to = detail::allocate_gradients(plan, q, k, v, result);
  result.grad_query_weight = detail::empty<kBeside<N, 2>>(query_weight.shape);
  result.grad_key_weight = detail::empty<kBeside<N, 2>>(key_weight.shape);
  result.grad_score_weight = detail::empty<kBeside<N, 1>>(score_weight.shape);
  float* const bias = params.bias ? result.grad_bias.emplace(detail::empty<kBeside<N, 1>>(score_weight.shape)).data() : nullptr;
  detail::additive_attention_backward(plan, g, q, k, v, views, options, to,
                                      {result.grad_query_weight.data(), result.grad_key_weight.data(), result.grad_score_weight.data(), bias});
  return result;
}

/// Computes the gradients of general_attention: those of scaled_dot_product_attention with the query q · weight,
/// whose gradient d gives grad_query = d weightᵀ and grad_weight = qᵀ d. With the policy nan, a fully masked query
/// makes grad_weight NaN.
///
/// @param grad     gradient of the output, (..,L,Dv)
/// @param query    as in the forward, like key, value, weight and options
/// @param key      (..,S,Dk)
/// @param value    (..,S,Dv)
/// @param weight   (Dq,Dk)
/// @param options  as in the forward
/// @return {grad_query, grad_key, grad_value, grad_weight, trace}
/// @throws SHAPE if grad does not have the shape of the output
/// @throws UNSUPPORTED, MASK, CONFIG, MEMORY as scaled_dot_product_attention_backward
/// @see torch.autograd
///
/// @code
/// xt::xtensor<float, 2> q{{1, 0}}, k{{1, 0}, {1, 0}}, v{{1}, {3}}, weight{{1, 0}, {0, 1}}, grad{{2}};
/// std::cout << attn::general_attention_backward(grad, q, k, v, weight).grad_value(1, 0);  // 1
/// @endcode
template <TensorLike G, TensorLike Q, TensorLike K, TensorLike V, TensorLike W>
auto general_attention_backward(const G& grad, const Q& query, const K& key, const V& value, const W& weight, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "general_attention_backward";
  const detail::Input g(grad, op, "grad");
  const detail::Input q(query, op, "query");
  const detail::Input k(key, op, "key");
  const detail::Input v(value, op, "value");
  const detail::Input w(weight, op, "weight");
  const detail::AttentionPlan plan = detail::plan_general_attention_backward(g, q, k, v, w, options);
  GeneralAttentionGradients<N> result;
  const detail::AttentionGradientBuffers to = detail::allocate_gradients(plan, q, k, v, result);
  result.grad_weight = detail::empty<kBeside<N, 2>>(w.shape);
  detail::general_attention_backward(plan, g, q, k, v, w, options, to, result.grad_weight.data());
  return result;
}

}  // namespace attn
