#include "attn/ops/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/ops/attention_core.hpp"

namespace attn::detail {
namespace {

constexpr std::string_view kOp = "scaled_dot_product_attention";

/// Traces that need projections: this op has none.
constexpr Trace kProjections{TraceName::q_proj, TraceName::k_proj, TraceName::v_proj, TraceName::merged};
constexpr Trace kEverything = Trace::from_bits(Trace::all().bits() | Trace{TraceName::weighted_values}.bits());

/// (B,H,rows,width) of an input of rank 2, 3 or 4.
struct Dims {
  std::int64_t B = 1, H = 1, rows = 0, width = 0;
};

Dims dims_of(const TensorView& x, std::string_view name) {
  const std::size_t rank = x.shape.rank();
  if (rank < 2 || rank > 4) fail(ErrorCode::shape, kOp, name, {"rank 2, 3 or 4"}, {x.shape});
  return {.B = rank >= 3 ? x.shape[0] : 1, .H = rank == 4 ? x.shape[1] : 1, .rows = x.shape.back(1), .width = x.shape.back(0)};
}

template <class T>
Heads<T> heads_of(T* data, std::int64_t H, std::int64_t rows, std::int64_t width) {
  // Unsigned, for of an empty tensor the other dimensions may be anything.
  const auto row = static_cast<std::uint64_t>(width), head = static_cast<std::uint64_t>(rows) * row, batch = static_cast<std::uint64_t>(H) * head;
  return {data, static_cast<std::ptrdiff_t>(batch), static_cast<std::ptrdiff_t>(head), static_cast<std::ptrdiff_t>(row)};
}

void check_values(std::string_view op, std::string_view argument, const Mask& mask) {
  if (mask.kind() != MaskKind::additive) return;
  for (const float value : mask.added())
    if (std::isnan(value) || value == std::numeric_limits<float>::infinity())
      fail(ErrorCode::mask, op, argument, {"additive values that are finite or -Infinity"},
           {std::isnan(value) ? "holding NaN" : "holding +Infinity"});
}

bool broadcasts(std::int64_t dim, std::int64_t size) { return dim == 1 || dim == size; }

}  // namespace

void check_masks(std::string_view op, const AttentionPlan& plan, const AttentionOptions& options, bool unbatched) {
  if (options.mask) {
    const Shape shape = options.mask->shape();
    const std::size_t rank = shape.rank();
    bool fits = rank >= 1 && rank <= 4 && shape.back(0) == plan.S;
    if (fits && rank >= 2) fits = broadcasts(shape.back(1), plan.L);
    if (fits && rank == 4) fits = broadcasts(shape[1], plan.H);
    if (fits && rank >= 3) fits = broadcasts(shape[0], plan.B);
    if (!fits) {
      const Shape full{plan.B, plan.H, plan.L, plan.S};
      const bool torch_form = rank == 3 && shape[0] == plan.B * plan.H && plan.H > 1;
      fail(ErrorCode::mask, op, "mask",
           {Shape{plan.S}, ", ", Shape{plan.L, plan.S}, ", ", Shape{plan.B, plan.L, plan.S}, " or ", full, ", where B, H and L may be 1",
            torch_form ? "; torch's (B*H,L,S) has to be reshaped to (B,H,L,S)" : ""},
           {shape});
    }
    check_values(op, "mask", *options.mask);
  }
  if (options.key_padding_mask) {
    const Shape shape = options.key_padding_mask->shape();
    const bool fits = (shape.rank() == 2 && shape[1] == plan.S && broadcasts(shape[0], plan.B)) || (unbatched && shape == Shape{plan.S});
    if (!fits) fail(ErrorCode::mask, op, "key_padding_mask", {Shape{plan.B, plan.S}}, {shape});
    check_values(op, "key_padding_mask", *options.key_padding_mask);
  }
}

AttentionPlan plan_scaled_dot_product_attention(const TensorView& query, const TensorView& key, const TensorView& value,
                                                const AttentionOptions& options) {
  const Dims q = dims_of(query, "query"), k = dims_of(key, "key"), v = dims_of(value, "value");
  const std::size_t rank = query.shape.rank();
  const auto wrong = [&](std::string_view name, const TensorView& x, std::initializer_list<TextPart> expected) {
    fail(ErrorCode::shape, kOp, name, expected, {x.shape});
  };
  if (q.width == 0) wrong("query", query, {"a width above 0"});
  if (key.shape.rank() != rank) wrong("key", key, {"rank ", rank, " as query ", query.shape});
  if (value.shape.rank() != rank) wrong("value", value, {"rank ", rank, " as query ", query.shape});
  if (k.width != q.width) wrong("key", key, {"(..,S,", q.width, ") as query ", query.shape});
  if (k.B != q.B) wrong("key", key, {"a batch of ", q.B, " as query ", query.shape});
  if (v.B != q.B) wrong("value", value, {"a batch of ", q.B, " as query ", query.shape});
  if (v.rows != k.rows) wrong("value", value, {k.rows, " rows, one for each key ", key.shape});
  if (v.H != k.H) wrong("value", value, {k.H, " heads as key ", key.shape});
  if (k.H != q.H) {
    if (!options.enable_gqa) wrong("key", key, {q.H, " heads as query ", query.shape, " (enable_gqa allows a divisor)"});
    if (k.H == 0 || q.H % k.H != 0) wrong("key", key, {"a number of heads that divides the query's, ", q.H});
  }

  AttentionPlan plan{.B = q.B, .H = q.H, .Hkv = k.H, .L = q.rows, .S = k.rows, .D = q.width, .Dv = v.width};
  plan.scale = attention_scale(kOp, options.scale, plan.D);
  plan.output = query.shape;
  plan.output[rank - 1] = plan.Dv;
  check_masks(kOp, plan, options, rank == 2);

  plan.has_weights = options.need_weights;
  plan.average_weights = options.average_weights && rank == 4;  // else there are no heads to average over
  plan.trace = options.trace;
  const bool all = (plan.trace.bits() | Trace{TraceName::weighted_values}.bits()) == kEverything.bits();
  if (all) plan.trace = Trace::from_bits(plan.trace.bits() & ~kProjections.bits());
  if ((plan.trace.bits() & kProjections.bits()) != 0)
    fail(ErrorCode::argument, kOp, "trace", {"names among q, k, v, scores, masked_scores, probabilities, weights, weighted_values, context, output"},
         {"a list with q_proj, k_proj, v_proj or merged, which only MultiHeadAttention has"});
  MemoryEstimate memory(kOp);
  plan_results(plan, rank >= 3, rank == 4, memory);
  return plan;
}

void scaled_dot_product_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                                  const AttentionOptions& options, const AttentionBuffers& buffers) {
  const AttentionInputs inputs{.query = heads_of(query.data, plan.H, plan.L, plan.D),
                               .key = heads_of(key.data, plan.Hkv, plan.S, plan.D),
                               .value = heads_of(value.data, plan.Hkv, plan.S, plan.Dv),
                               .context = heads_of(buffers.output, plan.H, plan.L, plan.Dv)};
  attention_core(plan, options, inputs, buffers);
  const auto copy = [&](TraceName name, const float* from, std::int64_t size) {
    if (float* to = buffers.trace[static_cast<std::size_t>(name)]) std::copy_n(from, size, to);
  };
  copy(TraceName::q, query.data, plan.B * plan.H * plan.L * plan.D);
  copy(TraceName::k, key.data, plan.B * plan.Hkv * plan.S * plan.D);
  copy(TraceName::v, value.data, plan.B * plan.Hkv * plan.S * plan.Dv);
  copy(TraceName::context, buffers.output, plan.B * plan.H * plan.L * plan.Dv);
  copy(TraceName::output, buffers.output, plan.B * plan.H * plan.L * plan.Dv);
}

}  // namespace attn::detail
