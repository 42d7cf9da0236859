#include "attn/ops/attention_inputs.hpp"

#include <algorithm>
#include <initializer_list>

#include "attn/ops/dropout.hpp"

namespace attn::detail {
namespace {

/// Of attention all but what only a layer has.
constexpr Trace kAvailable = Trace::from_bits(
    Trace::of_attention().bits() & ~Trace{TraceName::q_proj, TraceName::k_proj, TraceName::v_proj, TraceName::merged}.bits());

/// Throws SHAPE unless the past has the dims of x but for the number of rows, which is returned.
std::int64_t check_past(std::string_view op, std::string_view name, const TensorView& past, const TensorView& x) {
  const std::size_t rank = x.shape.rank();
  bool fits = past.shape.rank() == rank;
  for (std::size_t axis = 0; fits && axis < rank; ++axis) fits = axis + 2 == rank || past.shape[axis] == x.shape[axis];
  if (!fits) {
    fail(ErrorCode::shape, op, name, {"the dims of ", x.shape, " but for the number of rows"}, {past.shape});
  }
  return past.shape.back(1);
}

/// Rows of every batch and head, those of the past before the new ones.
void join(const TensorView& past, const TensorView& x, float* to) {
  const std::size_t rank = x.shape.rank();
  std::int64_t blocks = 1;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) blocks *= x.shape[axis];
  const std::int64_t before = past.data != nullptr ? past.shape.back(1) * past.shape.back(0) : 0, after = x.shape.back(1) * x.shape.back(0);
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (before > 0) to = std::copy_n(past.data + block * before, before, to);
    to = std::copy_n(x.data + block * after, after, to);
  }
}

}  // namespace

CheckedInputs check_attention_inputs(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
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

  CheckedInputs checked{.spec = spec_of(op, options, kAvailable, "q, k, v, scores, masked_scores, probabilities, weights, weighted_values, context, output"),
                        .sizes = {.B = q.B,
                                  .L = q.rows,
                                  .S = k.rows,
                                  .query_width = q.width,
                                  .key_width = k.width,
                                  .has_batch = rank >= 3,
                                  .has_heads = rank == 4},
                        .output = query.shape};
  if (options.past) {
    checked.sizes.past = check_past(op, "past.key", options.past->key, key);
    const std::int64_t values = check_past(op, "past.value", options.past->value, value);
    if (values != checked.sizes.past) wrong("past.value", options.past->value, {checked.sizes.past, " rows as past.key ", options.past->key.shape});
    checked.sizes.S += checked.sizes.past;
    if (!options.query_offset) checked.spec.query_offset = checked.sizes.past;
  }
  checked.spec.num_heads = q.H;
  checked.spec.num_key_value_heads = k.H;
  checked.spec.head_dim = q.width;
  checked.spec.value_head_dim = v.width;
  checked.output[rank - 1] = v.width;
  checked.spec.average_weights = options.average_weights && rank == 4;  // else there are no heads to average over
  if (options.dropout) check_dropout(op, *options.dropout);
  return checked;
}

JoinedKeys join_past(const AttentionPlan& plan, const TensorView& key, const TensorView& value, const AttentionOptions& options,
                     const AttentionBuffers& buffers) {
  if (!plan.spec.output_present) return {key.data, value.data};
  const KeyValueView past = options.past.value_or(KeyValueView{});
  join(past.key, key, buffers.present_key);
  join(past.value, value, buffers.present_value);
  return {buffers.present_key, buffers.present_value};
}

void copy_input_traces(const AttentionPlan& plan, const float* query, const JoinedKeys& keys, const AttentionBuffers& buffers) {
  const AttentionSizes& sizes = plan.sizes;
  const auto copy = [&](TraceName name, const float* from, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    if (float* to = buffers.of(name)) std::copy_n(from, sizes.B * heads * rows * width, to);
  };
  const std::int64_t H = plan.spec.num_heads, Hkv = plan.spec.num_key_value_heads, Dv = plan.spec.value_head_dim;
  copy(TraceName::q, query, H, sizes.L, sizes.query_width);
  copy(TraceName::k, keys.key, Hkv, sizes.S, sizes.key_width);
  copy(TraceName::v, keys.value, Hkv, sizes.S, Dv);
  copy(TraceName::context, buffers.output, H, sizes.L, Dv);
  copy(TraceName::output, buffers.output, H, sizes.L, Dv);
}

}  // namespace attn::detail
