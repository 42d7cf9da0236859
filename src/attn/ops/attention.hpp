#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>

#include "attn/ops/mask.hpp"
#include "attn/tensor/tensor.hpp"

namespace attn {

/// Intermediate results of attention, in the order in which they arise.
enum class TraceName : std::uint8_t {
  q_proj,           ///< (B,L,H·D) query projection, bias included
  k_proj,           ///< (B,S,H·D)
  v_proj,           ///< (B,S,H·Dv)
  q,                ///< (B,H,L,D)
  k,                ///< (B,H,S,D)
  v,                ///< (B,H,S,Dv)
  scores,           ///< (B,H,L,S) q kᵀ · scale, before masks
  masked_scores,    ///< (B,H,L,S) after masks, -infinity where blocked
  probabilities,    ///< (B,H,L,S) after softmax
  weights,          ///< (B,H,L,S) what multiplies the values
  weighted_values,  ///< (B,H,L,S,Dv) each weight times its value
  context,          ///< (B,H,L,Dv) sums of weighted values
  merged,           ///< (B,L,H·Dv) heads side by side
  output,           ///< (B,L,E) after the output projection
};

inline constexpr std::array<std::string_view, 14> kTraceNames{
    "q_proj",        "k_proj",  "v_proj",          "q",       "k",      "v",     "scores", "masked_scores",
    "probabilities", "weights", "weighted_values", "context", "merged", "output"};

constexpr std::string_view to_string(TraceName name) { return kTraceNames[static_cast<std::size_t>(name)]; }

/// Which intermediate results a call shall return.
class Trace {
 public:
  constexpr Trace() = default;
  constexpr Trace(std::initializer_list<TraceName> names) {
    for (const TraceName name : names) bits_ |= 1U << static_cast<unsigned>(name);
  }
  /// Every one that the op has, but the large weighted_values.
  static constexpr Trace all() {
    Trace trace;
    trace.bits_ = kAll;
    return trace;
  }
  static constexpr Trace from_bits(std::uint32_t bits) {
    Trace trace;
    trace.bits_ = bits;
    return trace;
  }
  constexpr bool has(TraceName name) const { return (bits_ >> static_cast<unsigned>(name) & 1U) != 0; }
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr bool any() const { return bits_ != 0; }

 private:
  static constexpr std::uint32_t kAll = ((1U << kTraceNames.size()) - 1) & ~(1U << static_cast<unsigned>(TraceName::weighted_values));
  std::uint32_t bits_ = 0;
};

/// What a query gets that has no key left.
enum class FullyMasked : std::uint8_t {
  zero,     ///< zero weights and output (torch's scaled_dot_product_attention since 2.5, ONNX Attention)
  nan,      ///< NaN (older torch)
  uniform,  ///< 1/S on every key, masked ones included (what a fill with -1e9 gives)
};

struct AttentionOptions {
  std::optional<Mask> mask = std::nullopt;
  std::optional<Mask> key_padding_mask = std::nullopt;  ///< (B,S)
  bool is_causal = false;                               ///< query i sees keys 0..i, also where L ≠ S; combines with masks
  std::optional<float> scale = std::nullopt;            ///< default 1/√D
  bool need_weights = false;                            ///< return the weights
  bool average_weights = false;                         ///< their mean over heads: (B,1,L,S)
  bool enable_gqa = false;                              ///< query heads may be a multiple of key and value heads
  FullyMasked fully_masked = FullyMasked::zero;
  Trace trace = {};
};

using AttentionTrace = std::map<TraceName, AnyTensor>;

/// N: rank of the output, W: rank of the weights.
template <std::size_t N, std::size_t W>
struct AttentionResult {
  Tensor<N> output;
  std::optional<Tensor<W>> weights;     ///< when need_weights
  std::optional<AttentionTrace> trace;  ///< when a trace was asked for
};

namespace detail {

/// Everything about a call that follows from shapes and options, checked, before anything is allocated.
struct AttentionPlan {
  std::int64_t B = 0, H = 0, Hkv = 0, L = 0, S = 0, D = 0, Dv = 0;
  float scale = 1;
  Shape output = {}, weights = {};  ///< as the caller sees them; weights only when asked for
  bool has_weights = false, average_weights = false;
  Trace trace = {};  ///< those asked for that the op has
  std::array<Shape, kTraceNames.size()> trace_shapes = {};
};

/// Where results go; null where not asked for.
struct AttentionBuffers {
  float* output = nullptr;
  float* weights = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
};

AttentionPlan plan_scaled_dot_product_attention(const TensorView& query, const TensorView& key, const TensorView& value,
                                                const AttentionOptions& options);
void scaled_dot_product_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                  const AttentionOptions& options, const AttentionBuffers& buffers);

/// Allocates what the plan says and lets run(buffers) fill it.
template <std::size_t N, std::size_t W, class Run>
AttentionResult<N, W> run_attention_plan(const AttentionPlan& plan, Run run) {
  AttentionResult<N, W> result{empty<N>(plan.output), {}, {}};
  AttentionBuffers buffers;
  buffers.output = result.output.data();
  if (plan.has_weights) buffers.weights = result.weights.emplace(empty<W>(plan.weights)).data();
  if (plan.trace.any()) {
    AttentionTrace& trace = result.trace.emplace();
    for (std::size_t i = 0; i < kTraceNames.size(); ++i) {
      const auto name = static_cast<TraceName>(i);
      if (plan.trace.has(name)) buffers.trace[i] = trace.emplace(name, empty_any(plan.trace_shapes[i])).first->second.data();
    }
  }
  run(buffers);
  return result;
}

}  // namespace detail

/// softmax(q kᵀ · scale + mask) v                                                   (Vaswani et al. 2017, eq. 1;
/// torch.nn.functional.scaled_dot_product_attention)
/// q (..,L,D), k (..,S,D), v (..,S,Dv) of rank 2, 3 (B) or 4 (B,H) -> output (..,L,Dv), weights (..,L,S), all of that rank.
/// L ≠ S and D ≠ Dv are fine. Masked keys are skipped: whatever they hold, NaN included, does not reach a result.
/// A query whose keys are all masked gives 0 (see FullyMasked).
/// Traces: q k v scores masked_scores probabilities weights weighted_values context output.
/// Throws SHAPE when B, H, D or S disagree, MASK when a mask does not fit or holds NaN or +infinity, MEMORY before
/// allocating more than the limit.
template <TensorLike Q, TensorLike K, TensorLike V>
auto scaled_dot_product_attention(const Q& query, const K& key, const V& value, const AttentionOptions& options = {}) {
  constexpr std::size_t N = kRankOf<Q>;
  static_assert(N >= 2 && N <= 4, "query has rank 2, 3 or 4");
  const char* op = "scaled_dot_product_attention";
  const TensorView q = view_of(query, op, "query"), k = view_of(key, op, "key"), v = view_of(value, op, "value");
  const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(q, k, v, options);
  return detail::run_attention_plan<N, N>(
      plan, [&](const detail::AttentionBuffers& buffers) { detail::scaled_dot_product_attention(plan, q, k, v, options, buffers); });
}

}  // namespace attn
