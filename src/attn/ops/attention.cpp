#include "attn/ops/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/ops/attention_core.hpp"

namespace attn::detail {
namespace {

/// Traces of what only a layer has.
constexpr Trace kProjections{TraceName::q_proj, TraceName::k_proj, TraceName::v_proj, TraceName::merged};
constexpr Trace kAttention = Trace::of_attention();

void check_values(std::string_view op, std::string_view argument, const Mask& mask) {
  if (mask.kind() != MaskKind::additive) return;
  for (const float value : mask.added())
    if (std::isnan(value) || value == std::numeric_limits<float>::infinity())
      fail(ErrorCode::mask, op, argument, {"additive values that are finite or -Infinity"},
           {std::isnan(value) ? "holding NaN" : "holding +Infinity"});
}

bool broadcasts(std::int64_t dim, std::int64_t size) { return dim == 1 || dim == size; }

}  // namespace

HeadDims head_dims(std::string_view op, std::string_view name, const TensorView& x) {
  const std::size_t rank = x.shape.rank();
  if (rank < 2 || rank > 4) fail(ErrorCode::shape, op, name, {"rank 2, 3 or 4"}, {x.shape});
  return {.B = rank >= 3 ? x.shape[0] : 1, .H = rank == 4 ? x.shape[1] : 1, .rows = x.shape.back(1), .width = x.shape.back(0)};
}

Trace available_traces(std::string_view op, Trace asked, Trace available, std::string_view names) {
  const std::uint32_t complete = asked.bits() | Trace{TraceName::weighted_values}.bits();
  if ((complete & kAttention.bits()) == kAttention.bits()) return Trace::from_bits(asked.bits() & available.bits());
  for (std::size_t i = 0; i < kTraceNames.size(); ++i)
    if (const auto name = static_cast<TraceName>(i); asked.has(name) && !available.has(name))
      fail(ErrorCode::argument, op, "trace", {"names among ", names},
           {"a list with ", kTraceNames[i], ", which only ", i < kAttentionTraceCount ? "MultiHeadAttention and " : "", "encoder layers have"});
  return asked;
}

AttentionMasks masks_of(const std::optional<Mask>& mask, const std::optional<Mask>& key_padding_mask, bool is_causal, FullyMasked fully_masked) {
  return {mask ? &*mask : nullptr, key_padding_mask ? &*key_padding_mask : nullptr, is_causal, fully_masked};
}

void check_masks(std::string_view op, const AttentionPlan& plan, bool unbatched) {
  const std::int64_t S = plan.S - plan.extra_keys;
  const Mask *const mask = plan.masks.mask, *const key_padding_mask = plan.masks.key_padding_mask;
  if (mask != nullptr) {
    const Shape shape = mask->shape();
    const std::size_t rank = shape.rank();
    bool fits = rank >= 1 && rank <= 4 && shape.back(0) == S;
    if (fits && rank >= 2) fits = broadcasts(shape.back(1), plan.L);
    if (fits && rank == 4) fits = broadcasts(shape[1], plan.H);
    if (fits && rank >= 3) fits = broadcasts(shape[0], plan.B);
    if (!fits) {
      const Shape full{plan.B, plan.H, plan.L, S};
      const bool torch_form = rank == 3 && shape[0] == plan.B * plan.H && plan.H > 1;
      fail(ErrorCode::mask, op, "mask",
           {Shape{S}, ", ", Shape{plan.L, S}, ", ", Shape{plan.B, plan.L, S}, " or ", full, ", where B, H and L may be 1",
            torch_form ? "; torch's (B*H,L,S) has to be reshaped to (B,H,L,S)" : ""},
           {shape});
    }
    check_values(op, "mask", *mask);
  }
  if (key_padding_mask != nullptr) {
    const Shape shape = key_padding_mask->shape();
    const bool fits = (shape.rank() == 2 && shape[1] == S && broadcasts(shape[0], plan.B)) || (unbatched && shape == Shape{S});
    if (!fits) fail(ErrorCode::mask, op, "key_padding_mask", {Shape{plan.B, S}}, {shape});
    check_values(op, "key_padding_mask", *key_padding_mask);
  }
}

AttentionPlan plan_attention(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, bool own_widths) {
  const HeadDims q = head_dims(op, "query", query), k = head_dims(op, "key", key), v = head_dims(op, "value", value);
  const std::size_t rank = query.shape.rank();
  const auto wrong = [&](std::string_view name, const TensorView& x, std::initializer_list<TextPart> expected) {
    fail(ErrorCode::shape, op, name, expected, {x.shape});
  };
  if (q.width == 0) wrong("query", query, {"a width above 0"});
  if (key.shape.rank() != rank) wrong("key", key, {"rank ", rank, " as query ", query.shape});
  if (value.shape.rank() != rank) wrong("value", value, {"rank ", rank, " as query ", query.shape});
  if (k.width != q.width && !own_widths) wrong("key", key, {"(..,S,", q.width, ") as query ", query.shape});
  if (k.B != q.B) wrong("key", key, {"a batch of ", q.B, " as query ", query.shape});
  if (v.B != q.B) wrong("value", value, {"a batch of ", q.B, " as query ", query.shape});
  if (v.rows != k.rows) wrong("value", value, {k.rows, " rows, one for each key ", key.shape});
  if (v.H != k.H) wrong("value", value, {k.H, " heads as key ", key.shape});
  if (k.H != q.H) {
    if (!options.enable_gqa) wrong("key", key, {q.H, " heads as query ", query.shape, " (enable_gqa allows a divisor)"});
    if (k.H == 0 || q.H % k.H != 0) wrong("key", key, {"a number of heads that divides the query's, ", q.H});
  }

  AttentionPlan plan{.B = q.B, .H = q.H, .Hkv = k.H, .L = q.rows, .S = k.rows, .D = q.width, .Dv = v.width};
  plan.query_width = q.width;
  plan.key_width = k.width;
  plan.output = query.shape;
  plan.output[rank - 1] = plan.Dv;
  plan.masks = masks_of(options.mask, options.key_padding_mask, options.is_causal, options.fully_masked);
  check_masks(op, plan, rank == 2);
  if (options.dropout) check_dropout(op, *options.dropout);

  plan.has_weights = options.need_weights;
  plan.average_weights = options.average_weights && rank == 4;  // else there are no heads to average over
  plan.trace = available_traces(op, options.trace, Trace::from_bits(kAttention.bits() & ~kProjections.bits()),
                                "q, k, v, scores, masked_scores, probabilities, weights, weighted_values, context, output");
  return plan;
}

void plan_attention_results(AttentionPlan& plan, const TensorView& query, MemoryEstimate& memory) {
  plan_results(plan, query.shape.rank() >= 3, query.shape.rank() == 4, memory);
}

void copy_attention_traces(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                           const AttentionBuffers& buffers) {
  const auto copy = [&](TraceName name, const float* from, std::int64_t size) {
    if (float* to = buffers.trace[static_cast<std::size_t>(name)]) std::copy_n(from, size, to);
  };
  copy(TraceName::q, query.data, plan.B * plan.H * plan.L * plan.query_width);
  copy(TraceName::k, key.data, plan.B * plan.Hkv * plan.S * plan.key_width);
  copy(TraceName::v, value.data, plan.B * plan.Hkv * plan.S * plan.Dv);
  copy(TraceName::context, buffers.output, plan.B * plan.H * plan.L * plan.Dv);
  copy(TraceName::output, buffers.output, plan.B * plan.H * plan.L * plan.Dv);
}

AttentionPlan plan_scaled_dot_product_attention(const TensorView& query, const TensorView& key, const TensorView& value,
                                                const AttentionOptions& options) {
  constexpr std::string_view kOp = "scaled_dot_product_attention";
  AttentionPlan plan = plan_attention(kOp, query, key, value, options, false);
  plan.scale = attention_scale(kOp, options.scale, plan.D);
  MemoryEstimate memory(kOp);
  plan_attention_results(plan, query, memory);
  memory.check();
  return plan;
}

void scaled_dot_product_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                  const AttentionOptions& options, const AttentionBuffers& buffers) {
  const AttentionInputs inputs{.query = heads_of(query.data, plan.H, plan.L, plan.D),
                               .key = heads_of(key.data, plan.Hkv, plan.S, plan.D),
                               .value = heads_of(value.data, plan.Hkv, plan.S, plan.Dv),
                               .context = heads_of(buffers.output, plan.H, plan.L, plan.Dv),
                               .dropout = dropout_of_call("scaled_dot_product_attention", options.dropout, options.seed)};
  Scratch scratch;
  attention_core(plan, inputs, buffers, scratch);
  copy_attention_traces(plan, query, key, value, buffers);
}

}  // namespace attn::detail
