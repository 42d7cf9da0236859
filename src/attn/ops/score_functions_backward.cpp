#include "attn/ops/score_functions_backward.hpp"

#include <algorithm>

#include "attn/memory/packed_linear.hpp"
#include "attn/ops/attention_backward_core.hpp"
#include "attn/ops/attention_backward_inputs.hpp"
#include "attn/ops/linear_backward.hpp"
#include "attn/ops/score_functions_inputs.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

constexpr std::string_view kAdditiveBackward = "additive_attention_backward", kGeneralBackward = "general_attention_backward";

/// x (count,width) with 0 in rows whose gradient (count,n) is 0, so that their NaN or infinity reaches no product.
TensorView rows_that_count(const TensorView& x, const float* gradient, std::int64_t n, Scratch& scratch) {
  const Rows rows(x);
  const auto of_gradient = static_cast<std::size_t>(n);
  float* const copy = scratch.take(rows.count(), rows.width());
  for (std::size_t row = 0; row < rows.count() && !counts(); ++row, gradient += of_gradient) {
    float* const to = copy + row * rows.width();
    if (std::all_of(gradient, gradient + of_gradient, [](float value) { return value == 0.0F; }))
      std::fill_n(to, rows.width(), 0.0F);
    else
      std::copy_n(rows[row], rows.width(), to);
  }
  return {copy, {static_cast<std::int64_t>(rows.count()), static_cast<std::int64_t>(rows.width())}};
}

}  // namespace

AttentionPlan plan_additive_attention_backward(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                                               const AdditiveParams& params, const AttentionOptions& options) {
  const CheckedInputs checked = check_attention_gradients(kAdditiveBackward, grad, query, key, value, options, true);
  AttentionPlan plan(kAdditiveBackward, additive_spec(kAdditiveBackward, checked, params, options), checked.sizes, checked.output);
  check_memory(kAdditiveBackward, [&] {
    const AdditiveGradientBuffers to_params{
        counted(params.query_weight.shape, "grad_query_weight"), counted(params.key_weight.shape, "grad_key_weight"),
        counted(params.score_weight.shape, "grad_score_weight"), params.bias.data != nullptr ? counted(params.bias.shape, "grad_bias") : nullptr};
    additive_attention_backward(plan, grad, query, key, value, params, options, counted_gradients(plan, query, key, value), to_params);
  });
  return plan;
}

void additive_attention_backward(const AttentionPlan& plan, const TensorView& grad, const TensorView& query, const TensorView& key,
                                 const TensorView& value, const AdditiveParams& params, const AttentionOptions& options,
                                 const AttentionGradientBuffers& to, const AdditiveGradientBuffers& to_params) {
  const AttentionSpec& spec = plan.spec;
  const AttentionSizes& sizes = plan.sizes;
  const std::int64_t A = spec.head_dim, H = spec.num_heads, Hkv = spec.num_key_value_heads;
  const std::int64_t queries = sizes.B * H * sizes.L, keys = sizes.B * Hkv * sizes.S;
  Scratch scratch;
  const float* const q = project(query, params.query_weight, params.bias.data, scratch);
  const float* const k = project(key, params.key_weight, nullptr, scratch);
  float* const grad_q = scratch.take(size_of(queries, A));
  float* const grad_k = scratch.take(size_of(keys, A));
  attention_backward_core(spec, sizes,
                          {.query = heads_of(q, H, sizes.L, A),
                           .key = heads_of(k, Hkv, sizes.S, A),
                           .value = heads_of(value),
                           .grad = heads_of(grad),
                           .score_weight = params.score_weight.data,
                           .dropout = dropout_of_call(kAdditiveBackward, options.dropout, options.seed)},
                          {.query = heads_of(grad_q, H, sizes.L, A),
                           .key = heads_of(grad_k, Hkv, sizes.S, A),
                           .value = heads_of(to.grad_value, Hkv, sizes.S, spec.value_head_dim),
                           .score_weight = to_params.score_weight,
                           .trace = to.trace},
                          scratch);
  linear_backward({grad_q, {queries, A}}, rows_that_count(query, grad_q, A, scratch), params.query_weight,
                  {to.grad_query, to_params.query_weight, to_params.bias});
  linear_backward({grad_k, {keys, A}}, rows_that_count(key, grad_k, A, scratch), params.key_weight, {to.grad_key, to_params.key_weight, nullptr});
  copy_gradient_traces(grad, query, key, value, to);
}

AttentionPlan plan_general_attention_backward(const TensorView& grad, const TensorView& query, const TensorView& key, const TensorView& value,
                                              const TensorView& weight, const AttentionOptions& options) {
  const CheckedInputs checked = check_attention_gradients(kGeneralBackward, grad, query, key, value, options, true);
  AttentionPlan plan(kGeneralBackward, general_spec(kGeneralBackward, checked, weight, options), checked.sizes, checked.output);
  check_memory(kGeneralBackward, [&] {
    general_attention_backward(plan, grad, query, key, value, weight, options, counted_gradients(plan, query, key, value),
                               counted(weight.shape, "grad_weight"));
  });
  return plan;
}

void general_attention_backward(const AttentionPlan& plan, const TensorView& grad, const TensorView& query, const TensorView& key,
                                const TensorView& value, const TensorView& weight, const AttentionOptions& options,
                                const AttentionGradientBuffers& to, float* grad_weight) {
  const AttentionSpec& spec = plan.spec;
  const AttentionSizes& sizes = plan.sizes;
  const std::int64_t H = spec.num_heads, Hkv = spec.num_key_value_heads, D = spec.head_dim, Dq = sizes.query_width;
  const std::int64_t queries = sizes.B * H * sizes.L;
  Scratch scratch;
  const float* const q = project(query, transposed(weight), nullptr, scratch);
  float* const grad_q = scratch.take(size_of(queries, D));
  attention_backward_core(spec, sizes,
                          {.query = heads_of(q, H, sizes.L, D),
                           .key = heads_of(key),
                           .value = heads_of(value),
                           .grad = heads_of(grad),
                           .dropout = dropout_of_call(kGeneralBackward, options.dropout, options.seed)},
                          {.query = heads_of(grad_q, H, sizes.L, D),
                           .key = heads_of(to.grad_key, Hkv, sizes.S, D),
                           .value = heads_of(to.grad_value, Hkv, sizes.S, spec.value_head_dim),
                           .trace = to.trace},
                          scratch);
  multiply(weight, nullptr, Rows(grad_q, static_cast<std::size_t>(queries), static_cast<std::size_t>(D)), to.grad_query, scratch);
  if (queries > 0 && D > 0)
    multiply_transposed(rows_that_count(query, grad_q, D, scratch), {grad_q, {queries, D}}, grad_weight, scratch);
  else
    fill_zeros(grad_weight, size_of(Dq, D));
  copy_gradient_traces(grad, query, key, value, to);
}

}  // namespace attn::detail
