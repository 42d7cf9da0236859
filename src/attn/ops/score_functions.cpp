#include "attn/ops/score_functions.hpp"

#include <vector>

#include "attn/ops/attention_core.hpp"
#include "attn/ops/linear.hpp"
#include "attn/ops/scratch.hpp"

namespace attn::detail {
namespace {

constexpr std::string_view kAdditive = "additive_attention", kGeneral = "general_attention";

/// Throws SHAPE unless the tensor has these dims.
void check_shape(std::string_view op, std::string_view name, const TensorView& x, const Shape& expected) {
  if (x.shape != expected) fail(ErrorCode::shape, op, name, {expected}, {x.shape});
}

void check_rank_2(std::string_view op, std::string_view name, const TensorView& x, const char* expected) {
  if (x.shape.rank() != 2) fail(ErrorCode::shape, op, name, {expected}, {x.shape});
}

}  // namespace

AttentionPlan plan_additive_attention(const TensorView& query, const TensorView& key, const TensorView& value, const AdditiveParams& params,
                                      const AttentionOptions& options) {
  AttentionPlan plan = plan_attention(kAdditive, query, key, value, options, true);
  check_rank_2(kAdditive, "query_weight", params.query_weight, "(A,Dq)");
  const std::int64_t A = params.query_weight.shape[0];
  check_shape(kAdditive, "query_weight", params.query_weight, {A, plan.query_width});
  check_shape(kAdditive, "key_weight", params.key_weight, {A, plan.key_width});
  check_shape(kAdditive, "score_weight", params.score_weight, {A});
  if (params.bias.data != nullptr) check_shape(kAdditive, "bias", params.bias, {A});
  plan.D = A;
  plan.scale = attention_scale(kAdditive, options.scale.value_or(1.0F), A);

  MemoryEstimate memory(kAdditive);
  memory.add("projected queries", {plan.B, plan.H, plan.L, A});
  memory.add("projected keys", {plan.B, plan.Hkv, plan.S, A});
  memory.add("packed weights", {2, A + 64, plan.query_width + plan.key_width + 1});
  plan_attention_results(plan, query, memory);
  memory.check();
  return plan;
}

void additive_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                        const AdditiveParams& params, const AttentionOptions& options, const AttentionBuffers& buffers) {
  const std::int64_t A = plan.D, queries = plan.B * plan.H * plan.L, keys = plan.B * plan.Hkv * plan.S;
  Scratch scratch;
  float* const q = scratch.take(size_of(queries, A));
  float* const k = scratch.take(size_of(keys, A));
  PackedLinear(params.query_weight.data, params.bias.data, A, plan.query_width).forward(query.data, queries, q);
  PackedLinear(params.key_weight.data, nullptr, A, plan.key_width).forward(key.data, keys, k);
  const AttentionInputs inputs{.query = heads_of(static_cast<const float*>(q), plan.H, plan.L, A),
                               .key = heads_of(static_cast<const float*>(k), plan.Hkv, plan.S, A),
                               .value = heads_of(value.data, plan.Hkv, plan.S, plan.Dv),
                               .context = heads_of(buffers.output, plan.H, plan.L, plan.Dv),
                               .score_weight = params.score_weight.data,
                               .dropout = dropout_of_call(kAdditive, options.dropout, options.seed)};
  attention_core(plan, inputs, buffers, scratch);
  copy_attention_traces(plan, query, key, value, buffers);
}

AttentionPlan plan_general_attention(const TensorView& query, const TensorView& key, const TensorView& value, const TensorView& weight,
                                     const AttentionOptions& options) {
  AttentionPlan plan = plan_attention(kGeneral, query, key, value, options, true);
  check_rank_2(kGeneral, "weight", weight, "(Dq,Dk)");
  check_shape(kGeneral, "weight", weight, {plan.query_width, plan.key_width});
  plan.D = plan.key_width;
  plan.scale = attention_scale(kGeneral, options.scale.value_or(1.0F), plan.D);

  MemoryEstimate memory(kGeneral);
  memory.add("projected queries", {plan.B, plan.H, plan.L, plan.D});
  memory.add("packed weights", {2, plan.query_width + 1, plan.key_width + 64});
  plan_attention_results(plan, query, memory);
  memory.check();
  return plan;
}

void general_attention(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value, const TensorView& weight,
                       const AttentionOptions& options, const AttentionBuffers& buffers) {
  const std::int64_t queries = plan.B * plan.H * plan.L, rows = plan.query_width, columns = plan.key_width;
  // q weight is a linear map by the transposed weight.
  std::vector<float> transposed(size_of(columns, rows));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) transposed[size_of(j, rows) + static_cast<std::size_t>(i)] = weight.data[i * columns + j];
  Scratch scratch;
  float* const q = scratch.take(size_of(queries, columns));
  PackedLinear(transposed.data(), nullptr, columns, rows).forward(query.data, queries, q);
  const AttentionInputs inputs{.query = heads_of(static_cast<const float*>(q), plan.H, plan.L, plan.D),
                               .key = heads_of(key.data, plan.Hkv, plan.S, plan.D),
                               .value = heads_of(value.data, plan.Hkv, plan.S, plan.Dv),
                               .context = heads_of(buffers.output, plan.H, plan.L, plan.Dv),
                               .dropout = dropout_of_call(kGeneral, options.dropout, options.seed)};
  attention_core(plan, inputs, buffers, scratch);
  copy_attention_traces(plan, query, key, value, buffers);
}

}  // namespace attn::detail
