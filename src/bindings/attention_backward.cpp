#include "attn/ops/attention_backward.hpp"

#include <utility>

#include "attention_options.hpp"
#include "attn/ops/score_functions_backward.hpp"
#include "define.hpp"
#include "gradients.hpp"

namespace attn::bindings {
namespace {

void scaled_dot_product_attention_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), q = arguments.tensor("query"), k = arguments.tensor("key"), v = arguments.tensor("value");
  AttentionCall given = read_attention_options(arguments);
  work([&](Result& result) {
    const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention_backward(grad, q, k, v, given.options);
    detail::scaled_dot_product_attention_backward(plan, grad, q, k, v, given.options,
                                                  allocate_attention_gradients(plan, q, k, v, given.traced, result));
  });
}

void general_attention_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), q = arguments.tensor("query"), k = arguments.tensor("key"), v = arguments.tensor("value");
  TensorView weight;
  arguments.require_group("params", [&] { weight = arguments.tensor("weight"); });
  AttentionCall given = read_attention_options(arguments);
  work([&](Result& result) {
    const detail::AttentionPlan plan = detail::plan_general_attention_backward(grad, q, k, v, weight, given.options);
    const detail::AttentionGradientBuffers to = allocate_attention_gradients(plan, q, k, v, given.traced, result);
    detail::general_attention_backward(plan, grad, q, k, v, weight, given.options, to, result.add("gradWeight", weight.shape));
  });
}

void additive_attention_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), q = arguments.tensor("query"), k = arguments.tensor("key"), v = arguments.tensor("value");
  const detail::AdditiveParams params = read_additive_params(arguments);
  AttentionCall given = read_attention_options(arguments);
  work([&](Result& result) {
    const detail::AttentionPlan plan = detail::plan_additive_attention_backward(grad, q, k, v, params, given.options);
    const detail::AttentionGradientBuffers to = allocate_attention_gradients(plan, q, k, v, given.traced, result);
    detail::AdditiveGradientBuffers to_params;
    to_params.query_weight = result.add("gradQueryWeight", params.query_weight.shape);
    to_params.key_weight = result.add("gradKeyWeight", params.key_weight.shape);
    to_params.score_weight = result.add("gradScoreWeight", params.score_weight.shape);
    if (params.bias.data != nullptr) to_params.bias = result.add("gradBias", params.bias.shape);
    detail::additive_attention_backward(plan, grad, q, k, v, params, given.options, to, to_params);
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_attention_backward) {
  using namespace attn::bindings;
  define_function<scaled_dot_product_attention_backward>("scaledDotProductAttentionBackward", "attention");
  define_function<general_attention_backward>("generalAttentionBackward", "attention");
  define_function<additive_attention_backward>("additiveAttentionBackward", "attention");
}
