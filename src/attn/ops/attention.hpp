#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
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
  weights,          ///< (B,H,L,S) after dropout too: what multiplies the values
  weighted_values,  ///< (B,H,L,S,Dv) each weight times its value
  context,          ///< (B,H,L,Dv) sums of weighted values
  merged,           ///< (B,L,H·Dv) heads side by side
  output,           ///< (B,L,E) after the output projection
  // Of an encoder layer only:
  attn_residual,  ///< (B,L,E) x + attention
  norm1,          ///< (B,L,E) what norm1 gives, wherever it sits
  ff_hidden,      ///< (B,L,F) after the activation, and the gate
  ff_output,      ///< (B,L,E) linear2 of it
  ff_residual,    ///< (B,L,E) the second sum
  norm2,          ///< (B,L,E) what norm2 gives
};

inline constexpr std::array<std::string_view, 20> kTraceNames{
    "q_proj",        "k_proj",    "v_proj",          "q",       "k",      "v",      "scores",        "masked_scores",
    "probabilities", "weights",   "weighted_values", "context", "merged", "output", "attn_residual", "norm1",
    "ff_hidden",     "ff_output", "ff_residual",     "norm2"};
/// The first of them are those of attention; the others only encoder layers have.
inline constexpr std::size_t kAttentionTraceCount = 14;

constexpr std::string_view to_string(TraceName name) { return kTraceNames[static_cast<std::size_t>(name)]; }

/// Which intermediate results a call shall return.
class Trace {
 public:
  constexpr Trace() = default;
  constexpr Trace(std::initializer_list<TraceName> names) {
    for (const TraceName name : names) bits_ |= 1U << static_cast<unsigned>(name);
  }
  /// Every one that the op or layer has, but the large weighted_values.
  static constexpr Trace all() {
    Trace trace;
    trace.bits_ = kAll;
    return trace;
  }
  /// Those of attention, without the ones that only encoder layers have.
  static constexpr Trace of_attention() { return from_bits((1U << kAttentionTraceCount) - 1); }
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
  std::optional<float> scale = std::nullopt;            ///< default 1/√D, for additive and general attention 1
  std::optional<float> dropout = std::nullopt;          ///< probability of a weight to become 0, in [0,1); the others are divided by 1 - dropout
  std::optional<std::uint64_t> seed = std::nullopt;     ///< of the dropout, default 0, of a layer in training its own: same seed, same result
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

/// Which keys a call lets its queries see. The masks are the caller's.
struct AttentionMasks {
  const Mask* mask = nullptr;
  const Mask* key_padding_mask = nullptr;
  bool is_causal = false;
  FullyMasked fully_masked = FullyMasked::zero;
  std::int64_t window = -1;  ///< keys further away than that are blocked; -1: none is
};

/// Sequences of one length, one after the other.
struct SequenceRun {
  std::int64_t count = 0, length = 0;
};

/// Everything about a call that follows from shapes and options, checked, before anything is allocated. It refers to the
/// options' masks.
struct AttentionPlan {
  std::int64_t B = 0, H = 0, Hkv = 0, L = 0, S = 0, D = 0, Dv = 0;
  std::int64_t extra_keys = 0;                  ///< the last of the S keys, which no mask speaks of and every query sees
  std::int64_t query_width = 0, key_width = 0;  ///< of the traces q and k
  float scale = 1;
  /// In a layer, rows of several lengths without padding between them, each attending to its own sequence: B is 1, L = S is the number of
  /// rows, and there are no masks. Empty: B sequences of L.
  std::span<const SequenceRun> runs = {};
  /// Added to the scaled scores before masks: that of head h, query i and key j is at h · position_bias_row + j - i.
  const float* position_bias = nullptr;
  std::int64_t position_bias_row = 0;
  AttentionMasks masks = {};
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
/// A query whose keys are all masked gives 0 (see FullyMasked). Keys that are not masked count as in IEEE arithmetic: a weight
/// below 2⁻¹²⁶ of its row's largest is 0, and 0 times an infinite value is NaN, as in torch (with more than 1024 keys the
/// infinity may come out, as it does in float64).
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
