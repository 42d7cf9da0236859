#include "attn/ops/attention_inputs.hpp"

#include <algorithm>
#include <initializer_list>

#include "attn/ops/dropout.hpp"
#include "attn/tensor/dry_run.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

constexpr Trace kAvailable =
    Trace::from_bits(Trace::of_attention().bits() & ~Trace{TraceName::q_proj, TraceName::k_proj, TraceName::v_proj, TraceName::merged}.bits());

std::int64_t check_past(std::string_view op, std::string_view name, const TensorView& past, const TensorView& x) {
  const std::size_t rank = x.shape.rank();
  bool fits = past.shape.rank() == rank;
  for (std::size_t axis = 0; fits && axis < rank; ++axis) fits = axis + 2 == rank || past.shape[axis] == x.shape[axis];
  if (!fits) {
    fail(ErrorCode::shape, op, name, {"the dims of ", x.shape, " except for the number of rows"}, {past.shape});
  }
  return past.shape.back(1);
}

void join(const TensorView& past, const TensorView& x, float* to) {
  if (counts()) return;
  const Rows old_rows(past), new_rows(x);
  const std::size_t before = past.data != nullptr ? static_cast<std::size_t>(past.shape.back(1)) : 0,
                    after = static_cast<std::size_t>(x.shape.back(1));
  std::size_t old_row = 0, new_row = 0;
  const std::size_t blocks = after > 0 ? new_rows.count() / after : before > 0 ? old_rows.count() / before : 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < before; ++i) to = std::copy_n(old_rows[old_row++], new_rows.width(), to);
    for (std::size_t i = 0; i < after; ++i) to = std::copy_n(new_rows[new_row++], new_rows.width(), to);
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

  CheckedInputs checked{
      .spec = spec_of(op, options, kAvailable, "q, k, v, scores, masked_scores, probabilities, weights, weighted_values, context, output"),
      .sizes = {.B = q.B, .L = q.rows, .S = k.rows, .query_width = q.width, .key_width = k.width, .has_batch = rank >= 3, .has_heads = rank == 4},
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
  checked.spec.average_weights = options.average_weights && rank == 4;  // otherwise there are no heads to average over
  if (options.dropout) check_dropout(op, *options.dropout);
  return checked;
}

KeyValueView join_past(const AttentionPlan& plan, const TensorView& key, const TensorView& value, const AttentionOptions& options,
                       const AttentionBuffers& buffers) {
  if (!plan.spec.output_present) return {key, value};
  const KeyValueView past = options.past.value_or(KeyValueView{});
  join(past.key, key, buffers.present_key);
  join(past.value, value, buffers.present_value);
  return {TensorView(buffers.present_key, plan.present_key), TensorView(buffers.present_value, plan.present_value)};
}

void copy_input_traces(const AttentionPlan& plan, const TensorView& query, const KeyValueView& keys, const AttentionBuffers& buffers) {
  if (counts()) return;
  const auto copy = [&](TraceName name, const TensorView& from) {
    float* to = buffers.of(name);
    if (to == nullptr) return;
    const Rows rows(from);
    for (std::size_t row = 0; row < rows.count(); ++row) to = std::copy_n(rows[row], rows.width(), to);
  };
  copy(TraceName::q, query);
  copy(TraceName::k, keys.key);
  copy(TraceName::v, keys.value);
  copy(TraceName::context, {buffers.output, plan.output});
  copy(TraceName::output, {buffers.output, plan.output});
}

}  // namespace attn::detail
