#include "attn/ops/score_functions.hpp"

#include <utility>

#include "attention_options.hpp"
#include "define.hpp"

namespace attn::bindings {
namespace {

void additive_attention(Arguments& arguments, Work<> work) {
  const TensorView q = arguments.tensor("query"), k = arguments.tensor("key"), v = arguments.tensor("value");
  const detail::AdditiveParams params = read_additive_params(arguments);
  AttentionCall given = read_attention_options(arguments);
  work([&](Result& result) {
    const detail::AttentionPlan plan = detail::plan_additive_attention(q, k, v, params, given.options);
    detail::additive_attention(plan, q, k, v, params, given.options, allocate_results(plan, given.traced, result));
  });
}

void general_attention(Arguments& arguments, Work<> work) {
  const TensorView q = arguments.tensor("query"), k = arguments.tensor("key"), v = arguments.tensor("value");
  TensorView weight;
  arguments.require_group("params", [&] { weight = arguments.tensor("weight"); });
  AttentionCall given = read_attention_options(arguments);
  work([&](Result& result) {
    const detail::AttentionPlan plan = detail::plan_general_attention(q, k, v, weight, given.options);
    detail::general_attention(plan, q, k, v, weight, given.options, allocate_results(plan, given.traced, result));
  });
}

}  // namespace

detail::AdditiveParams read_additive_params(Arguments& arguments) {
  detail::AdditiveParams params;
  arguments.require_group("params", [&] {
    params.query_weight = arguments.tensor("queryWeight");
    params.key_weight = arguments.tensor("keyWeight");
    params.score_weight = arguments.tensor("scoreWeight");
    params.bias = arguments.optional_tensor("bias").value_or(TensorView{});
  });
  return params;
}

}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_score_functions) {
  using namespace attn::bindings;
  define_function<additive_attention>("additiveAttention", "attention");
  define_function<general_attention>("generalAttention", "attention");
}
