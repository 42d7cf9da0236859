#include "attn/ops/score_functions.hpp"

#include <vector>

#include "attn/memory/packed_linear.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/score_functions_inputs.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

constexpr std::string_view kAdditive = "additive_attention", kGeneral = "general_attention";

void check_shape(std::string_view op, std::string_view name, const TensorView& x, const Shape& expected) {
  if (x.shape != expected) fail(ErrorCode::shape, op, name, {expected}, {x.shape});
}

void check_rank_2(std::string_view op, std::string_view name, const TensorView& x, const char* expected) {
  if (x.shape.rank() != 2) fail(ErrorCode::shape, op, name, {expected}, {x.shape});
}

}  // namespace

AttentionSpec additive_spec(std::string_view op, const CheckedInputs& checked, const AdditiveParams& params, const AttentionOptions& options) {
  const AttentionSizes& sizes = checked.sizes;
  check_rank_2(op, "query_weight", params.query_weight, "(A,Dq)");
  const std::int64_t A = params.query_weight.shape[0];
  check_shape(op, "query_weight", params.query_weight, {A, sizes.query_width});
  check_shape(op, "key_weight", params.key_weight, {A, sizes.key_width});
  check_shape(op, "score_weight", params.score_weight, {A});
  if (params.bias.data != nullptr) check_shape(op, "bias", params.bias, {A});
  AttentionSpec spec = checked.spec;
  spec.head_dim = A;
  spec.scale = attention_scale(op, options.scale.value_or(1.0F), A);
  return spec;
}

AttentionSpec general_spec(std::string_view op, const CheckedInputs& checked, const TensorView& weight, const AttentionOptions& options) {
  const AttentionSizes& sizes = checked.sizes;
  check_rank_2(op, "weight", weight, "(Dq,Dk)");
  check_shape(op, "weight", weight, {sizes.query_width, sizes.key_width});
  AttentionSpec spec = checked.spec;
  spec.head_dim = sizes.key_width;
  spec.scale = attention_scale(op, options.scale.value_or(1.0F), spec.head_dim);
  return spec;
}

const float* project(const TensorView& x, const TensorView& weight, const float* bias, Scratch& scratch) {
  const Rows rows(x);
  float* const y = scratch.take(rows.count(), static_cast<std::size_t>(weight.shape[0]));
  multiply(weight, bias, rows, y, scratch);
  return y;
}

AttentionPlan plan_additive_attention(const TensorView& query, const TensorView& key, const TensorView& value, const AdditiveParams& params,
                                      const AttentionOptions& options) {
  const CheckedInputs checked = check_attention_inputs(kAdditive, query, key, value, options, true);
  const AttentionSpec spec = additive_spec(kAdditive, checked, params, options);
  AttentionPlan plan(kAdditive, spec, checked.sizes, checked.output);
  check_memory(kAdditive, [&] { additive_attention(plan, query, key, value, params, options, counted_buffers(plan)); });
  return plan;
}

void additive_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                        const AdditiveParams& params, const AttentionOptions& options, const AttentionBuffers& buffers) {
  const AttentionSpec& spec = plan.spec;
  const AttentionSizes& sizes = plan.sizes;
  const std::int64_t A = spec.head_dim, Hkv = spec.num_key_value_heads, Dv = spec.value_head_dim;
  const KeyValueView joined = join_past(plan, key, value, options, buffers);
  Scratch scratch;
  const AttentionInputs inputs{.query = heads_of(project(query, params.query_weight, params.bias.data, scratch), spec.num_heads, sizes.L, A),
                               .key = heads_of(project(joined.key, params.key_weight, nullptr, scratch), Hkv, sizes.S, A),
                               .value = heads_of(joined.value),
                               .context = heads_of(buffers.output, spec.num_heads, sizes.L, Dv),
                               .score_weight = params.score_weight.data,
                               .dropout = dropout_of_call(kAdditive, options.dropout, options.seed)};
  attention_core(spec, sizes, inputs, buffers, scratch);
  copy_input_traces(plan, query, joined, buffers);
}

AttentionPlan plan_general_attention(const TensorView& query, const TensorView& key, const TensorView& value, const TensorView& weight,
                                     const AttentionOptions& options) {
  const CheckedInputs checked = check_attention_inputs(kGeneral, query, key, value, options, true);
  const AttentionSpec spec = general_spec(kGeneral, checked, weight, options);
  AttentionPlan plan(kGeneral, spec, checked.sizes, checked.output);
  check_memory(kGeneral, [&] { general_attention(plan, query, key, value, weight, options, counted_buffers(plan)); });
  return plan;
}

void general_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const TensorView& weight,
                       const AttentionOptions& options, const AttentionBuffers& buffers) {
  const AttentionSpec& spec = plan.spec;
  const AttentionSizes& sizes = plan.sizes;
  const KeyValueView joined = join_past(plan, key, value, options, buffers);
  Scratch scratch;
  const float* const q = project(query, transposed(weight), nullptr, scratch);
  const AttentionInputs inputs{.query = heads_of(q, spec.num_heads, sizes.L, spec.head_dim),
                               .key = heads_of(joined.key),
                               .value = heads_of(joined.value),
                               .context = heads_of(buffers.output, spec.num_heads, sizes.L, spec.value_head_dim),
                               .dropout = dropout_of_call(kGeneral, options.dropout, options.seed)};
  attention_core(spec, sizes, inputs, buffers, scratch);
  copy_input_traces(plan, query, joined, buffers);
}

}  // namespace attn::detail
