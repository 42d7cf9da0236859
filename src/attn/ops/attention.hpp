#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "attn/ops/attention_plan.hpp"
#include "attn/ops/trace.hpp"
#include "attn/tensor/owner.hpp"
#include "attn/tensor/results.hpp"
#ifndef ATTN_VIEWS_ONLY
#include "attn/ops/attention_trace.hpp"
#include "attn/ops/mask.hpp"
#endif

namespace attn {

/// Views of keys (B,Hkv,P,D) and values (B,Hkv,P,Dv), without B or Hkv if the call has none.
/// @code
/// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
/// xt::xtensor<float, 2> first{{1, 0, 0, 0}}, second{{0, 1, 0, 0}}, both{{1, 0, 0, 0}, {0, 1, 0, 0}};
/// const auto present = *layer.forward(first, {.output_present = true}).present;
/// const auto next = layer.forward(second, {.past = attn::KeyValueView(present.key, present.value)}).output;
/// const auto whole = layer.forward(both, {.is_causal = true}).output;
/// std::cout << (next(0, 0) == whole(1, 0));  // 1
/// @endcode
struct KeyValueView {
  TensorView key, value;
  Owner owner = {};  ///< owns copies made because rows have gaps

  KeyValueView() = default;
  /// Refers to keys and values; KeyValueView has an example.
  KeyValueView(const TensorView& keys, const TensorView& values) : key(keys), value(values) {}
  template <TensorLike K, TensorLike V>
  KeyValueView(const K& keys, const V& values) {
    struct Both {
      detail::Input<K> key;
      detail::Input<V> value;
      Both(const K& k, const V& v) : key(k, "attention", "past.key"), value(v, "attention", "past.value") {}
    };
    auto both = std::make_shared<const Both>(keys, values);
    key = both->key;
    value = both->value;
    owner = std::move(both);
  }
};

/// Options for scaled_dot_product_attention(), additive_attention(), general_attention() and MultiHeadAttention::forward().
struct AttentionOptions {
  std::optional<Mask> mask = std::nullopt;              ///< such as Mask::attend(m); refers to m
  std::optional<Mask> key_padding_mask = std::nullopt;  ///< (B,S)
  bool is_causal = false;                               ///< masks keys after the query's position, also if L ≠ S; combines with masks
  std::optional<float> scale = std::nullopt;            ///< default 1/√D; 1 for additive and general attention
  std::optional<float> dropout = std::nullopt;          ///< probability that a weight becomes 0, in [0,1); the others are divided by 1 - dropout
  std::optional<std::uint64_t> seed = std::nullopt;     ///< dropout seed: same seed, same result. Default 0, in a training layer the layer's own
  bool need_weights = false;                            ///< return the weights
  bool average_weights = false;                         ///< return the mean of the weights over heads: (B,1,L,S)
  bool enable_gqa = false;                              ///< grouped-query attention: query heads may be a multiple of key and value heads
  FullyMasked fully_masked = FullyMasked::zero;
  Trace trace = {};
  std::optional<float> softcap = std::nullopt;  ///< c: scores become c · tanh(score / c), after scale, before masks (Gemma 2); default 0: none
  std::optional<Window> window = std::nullopt;  ///< default: all keys
  /// Position of query 0 for is_causal and window; S - L lets the last query see all keys. Default: the length of the
  /// past, else 0.
  std::optional<std::int64_t> query_offset = std::nullopt;
  /// Key/value cache of earlier calls. Its keys precede the new ones; masks and S include them. For a layer: the
  /// present that an earlier call returned.
  std::optional<KeyValueView> past = std::nullopt;
  bool output_present = false;  ///< return past and new keys and values concatenated; always on with a past
  bool for_backward = false;    ///< layers only: keep the values that backward() needs, as in train mode
};

/// Past and new keys and values for the next call: options.past = KeyValueView(present.key, present.value).
template <std::size_t N>
struct KeyValue {
  TensorOf<N> key, value;  ///< (B,Hkv,P+S,D), (B,Hkv,P+S,Dv)
};

/// Result of the attention functions and of MultiHeadAttention::forward(). N: rank of the output, W: rank of the weights.
template <std::size_t N, std::size_t W>
struct AttentionResult {
  TensorOf<N> output;
  std::optional<TensorOf<W>> weights;                                 ///< with need_weights
  std::optional<std::map<TraceName, TensorOf<kAnyBeside<N>>>> trace;  ///< if a trace was requested
  std::optional<KeyValue<W>> present;                                 ///< with output_present or a past
};

namespace detail {

/// Returns the part of a spec that the options determine for any op; scale and heads keep their defaults. Throws
/// CONFIG, ARGUMENT.
AttentionSpec spec_of(std::string_view op, const AttentionOptions& options, Trace available, std::string_view available_names);

AttentionPlan plan_scaled_dot_product_attention(const TensorView& query, const TensorView& key, const TensorView& value,
                                                const AttentionOptions& options);
void scaled_dot_product_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                  const AttentionOptions& options, const AttentionBuffers& buffers);

/// Allocates the results of the plan and lets run(buffers) fill them.
template <std::size_t N, std::size_t W, class Run>
AttentionResult<N, W> run_attention_plan(const AttentionPlan& plan, Run run) {
  AttentionResult<N, W> result{empty<N>(plan.output), {}, {}, {}};
  AttentionBuffers buffers;
  buffers.output = result.output.data();
  if (plan.spec.need_weights) buffers.weights = result.weights.emplace(empty<W>(plan.weights)).data();
  if (plan.spec.output_present) {
    KeyValue<W>& present = result.present.emplace(KeyValue<W>{empty<W>(plan.present_key), empty<W>(plan.present_value)});
    buffers.present_key = present.key.data();
    buffers.present_value = present.value.data();
  }
  if (plan.spec.trace.any()) {
    auto& trace = result.trace.emplace();
    for (std::size_t i = 0; i < plan.trace_shapes.size(); ++i) {
      const auto name = static_cast<TraceName>(i);
      if (plan.spec.trace.has(name)) buffers.trace[i] = trace.emplace(name, empty<kAnyBeside<N>>(plan.trace_shapes[i])).first->second.data();
    }
  }
  run(buffers);
  return result;
}

}  // namespace detail

/// Computes scaled dot-product attention, softmax(softcap(q kᵀ · scale) + mask) v. Masked keys are skipped: their
/// values, NaN included, do not reach a result. A query whose keys are all masked gives 0 (see FullyMasked). Other
/// keys follow IEEE arithmetic: a weight below 2⁻¹²⁶ of its row's largest is 0, and 0 times an infinite value is
/// NaN, as in torch (with more than 1024 keys the result may be the infinity, as in float64).
/// Traces: q k v scores masked_scores probabilities weights weighted_values context output.
///
/// @param query    (..,L,D) of rank 2, 3 (B) or 4 (B,H)
/// @param key      (..,S,D); L and S may differ
/// @param value    (..,S,Dv); D and Dv may differ
/// @param options  mask, causality, scale, dropout, window, cache, and which intermediates to return
/// @return output (..,L,Dv); weights (..,L,S) with need_weights; trace; present. All have the rank of the query
/// @throws SHAPE if B, H, D or S disagree
/// @throws MASK if a mask does not fit or holds NaN or +infinity
/// @throws CONFIG if an option is outside its range
/// @throws ARGUMENT if `trace` has a name that the computation does not have
/// @throws MEMORY if the call would exceed the memory limit; thrown before anything is allocated
/// @see Vaswani et al. 2017, eq. 1; torch.nn.functional.scaled_dot_product_attention
///
/// @code
/// xt::xtensor<float, 2> q{{1, 0}}, k{{1, 0}, {1, 0}}, v{{1, 2}, {3, 4}};
/// auto result = attn::scaled_dot_product_attention(q, k, v, {.need_weights = true});
/// std::cout << result.output << *result.weights;  // {{ 2.,  3.}}{{ 0.5,  0.5}}
/// @endcode
template <TensorLike Q, TensorLike K, TensorLike V>
auto scaled_dot_product_attention(const Q& query, const K& key, const V& value, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "scaled_dot_product_attention";
  const detail::Input q(query, op, "query");
  const detail::Input k(key, op, "key");
  const detail::Input v(value, op, "value");
  const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(q, k, v, options);
  return detail::run_attention_plan<N, N>(
      plan, [&](const detail::AttentionBuffers& buffers) { detail::scaled_dot_product_attention(plan, q, k, v, options, buffers); });
}

}  // namespace attn
