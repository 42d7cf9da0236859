#include "attn/layers/multi_head_attention.hpp"

#include <utility>

#include "attention_options.hpp"
#include "define.hpp"
#include "gradients.hpp"
#include "rotary_options.hpp"

namespace attn::bindings {
namespace {

MultiHeadAttentionOptions multi_head_attention_options(Arguments& arguments) {
  MultiHeadAttentionOptions options;
  arguments.require_group("options", [&] {
    arguments.require("embedDim", options.embed_dim);
    arguments.require("numHeads", options.num_heads);
    arguments.option("numKeyValueHeads", options.num_key_value_heads);
    arguments.option("kdim", options.kdim);
    arguments.option("vdim", options.vdim);
    arguments.option("headDim", options.head_dim);
    arguments.option("valueHeadDim", options.value_head_dim);
    arguments.option("bias", options.bias);
    arguments.option("addBiasKv", options.add_bias_kv);
    arguments.option("addZeroAttn", options.add_zero_attn);
    arguments.option("dropout", options.dropout);
    arguments.option("scale", options.scale);
    arguments.option("outProj", options.out_proj);
    options.rotary = rotary_options(arguments, "rotary");
  });
  return options;
}

void attention_forward(Arguments& arguments, Work<MultiHeadAttention> work) {
  const TensorView q = arguments.tensor("query");
  const std::optional<TensorView> key = arguments.optional_tensor("key"), value = arguments.optional_tensor("value");
  AttentionCall given = read_attention_options(arguments);
  work([&](const MultiHeadAttention& self, Result& result) {
    // The layer recognises an omitted key or value by the identical view.
    const TensorView &k = key ? *key : q, &v = value ? *value : q;
    const detail::AttentionPlan plan = self.plan(q, k, v, given.options);
    self.run(plan, q, k, v, given.options, allocate_results(plan, given.traced, result));
  });
}

void attention_backward(Arguments& arguments, Work<MultiHeadAttention> work) {
  const TensorView grad = arguments.tensor("grad");
  BackwardOptions options;
  bool traced = false;
  arguments.group("options", [&] { traced = arguments.option("trace", options.trace); });
  work([&](MultiHeadAttention& self, Result& result) {
    const detail::MultiHeadAttentionBackwardPlan plan = self.plan_backward(grad, options);
    detail::MultiHeadAttentionGradientBuffers to{.grad_query = result.add("gradQuery", plan.query)};
    if (plan.has_key_and_value) {
      to.grad_key = result.add("gradKey", plan.key);
      to.grad_value = result.add("gradValue", plan.value);
    }
    allocate_traces(plan.attention, traced, result, to.trace);
    self.run_backward(plan, grad, to);
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_multi_head_attention) {
  using namespace attn::bindings;
  define_layer<attn::MultiHeadAttention, multi_head_attention_options>("MultiHeadAttention")
      .method<attention_forward>("forward", "attention")
      .method<attention_backward>("backward", "attention");
}
