#pragma once

#include <array>
#include <map>
#include <optional>

#include "attn/ops/attention.hpp"

namespace attn {

/// Result of scaled_dot_product_attention_backward(). N: rank of the query.
template <std::size_t N>
struct AttentionGradients {
  TensorOf<N> grad_query, grad_key, grad_value;
  /// If a trace was requested: the gradient of every intermediate result, with its name and shape in the forward's
  /// trace.
  std::optional<std::map<TraceName, TensorOf<kAnyBeside<N>>>> trace = std::nullopt;
};

namespace detail {

/// Output buffers for gradients; a trace is null if not requested.
struct AttentionGradientBuffers {
  float *grad_query = nullptr, *grad_key = nullptr, *grad_value = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
};

AttentionPlan plan_scaled_dot_product_attention_backward(const TensorView& grad, const TensorView& query, const TensorView& key,
                                                         const TensorView& value, const AttentionOptions& options);
void scaled_dot_product_attention_backward(const AttentionPlan& plan, const TensorView& grad, const TensorView& query, const TensorView& key,
                                           const TensorView& value, const AttentionOptions& options, const AttentionGradientBuffers& to);

/// Allocates the gradients of query, key and value and the traces of the plan, and returns their buffers.
template <std::size_t N>
AttentionGradientBuffers allocate_gradients(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                            AttentionGradients<N>& gradients) {
  gradients.grad_query = empty<N>(query.shape);
  gradients.grad_key = empty<N>(key.shape);
  gradients.grad_value = empty<N>(value.shape);
  AttentionGradientBuffers to{gradients.grad_query.data(), gradients.grad_key.data(), gradients.grad_value.data()};
  if (!plan.spec.trace.any()) return to;
  auto& trace = gradients.trace.emplace();
  for (std::size_t i = 0; i < plan.trace_shapes.size(); ++i) {
    const auto name = static_cast<TraceName>(i);
    if (plan.spec.trace.has(name)) to.trace[i] = trace.emplace(name, empty<kAnyBeside<N>>(plan.trace_shapes[i])).first->second.data();
  }
  return to;
}

}  // namespace detail

/// Computes the gradients of scaled_dot_product_attention. With its probabilities P and dP = grad vᵀ: dS = P ∘ (dP -
/// Σ P ∘ dP), grad_query = scale · dS k, grad_key = scale · dSᵀ q, grad_value = Pᵀ grad. P is recomputed, so without
/// a trace no buffer is as large as (B,H,L,S). Masked keys are skipped: their values, NaN included, reach no
/// gradient. If all keys of a query are masked, fully_masked decides: zero gives a gradient of 0; nan gives NaN (0 if
/// the gradient of its output is 0); uniform gives 0 and distributes its own gradient over all values. The order of
/// sums is fixed, so any number of threads gives the same bits.
/// Traces: q k v scores masked_scores probabilities weights weighted_values context output; 0 for masked keys.
///
/// @param grad     gradient of the output, (..,L,Dv)
/// @param query    as in the forward, like key and value
/// @param key      (..,S,D)
/// @param value    (..,S,Dv)
/// @param options  as in the forward; need_weights, average_weights and output_present have no effect
/// @return {grad_query, grad_key, grad_value, trace}, each with the shape of its input
/// @throws UNSUPPORTED for a past: pass its keys and values in front of the new ones, and its length as query_offset
/// @throws SHAPE if grad does not have the shape of the output
/// @throws MASK, CONFIG, MEMORY as scaled_dot_product_attention
/// @see torch.autograd; Dao et al. 2022
///
/// @code
/// xt::xtensor<float, 2> q{{1, 0}}, k{{1, 0}, {1, 0}}, v{{1}, {3}}, grad{{1}};
/// std::cout << attn::scaled_dot_product_attention_backward(grad, q, k, v).grad_value;  // {{ 0.5}, { 0.5}}
/// @endcode
template <TensorLike G, TensorLike Q, TensorLike K, TensorLike V>
auto scaled_dot_product_attention_backward(const G& grad, const Q& query, const K& key, const V& value, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "scaled_dot_product_attention_backward";
  const detail::Input g(grad, op, "grad");
  const detail::Input q(query, op, "query");
  const detail::Input k(key, op, "key");
  const detail::Input v(value, op, "value");
  const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention_backward(g, q, k, v, options);
  AttentionGradients<N> result;
  const detail::AttentionGradientBuffers to = detail::allocate_gradients(plan, q, k, v, result);
  detail::scaled_dot_product_attention_backward(plan, g, q, k, v, options, to);
  return result;
}

}  // namespace attn
