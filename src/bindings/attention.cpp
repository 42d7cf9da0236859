#include "attn/ops/attention.hpp"

#include <utility>

#include "attention_options.hpp"
#include "define.hpp"

namespace attn::bindings {
namespace {

void scaled_dot_product_attention(Arguments& arguments, Work<> work) {
  const TensorView q = arguments.tensor("query"), k = arguments.tensor("key"), v = arguments.tensor("value");
  AttentionCall given = read_attention_options(arguments);
  work([&](Result& result) {
    const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(q, k, v, given.options);
    detail::scaled_dot_product_attention(plan, q, k, v, given.options, allocate_results(plan, given.traced, result));
  });
}

}  // namespace

AttentionCall read_attention_options(Arguments& arguments) {
  AttentionCall call;
  AttentionOptions& options = call.options;
  arguments.group("options", [&] {
    arguments.option("mask", options.mask);
    arguments.option("keyPaddingMask", options.key_padding_mask);
    arguments.option("isCausal", options.is_causal);
    arguments.option("scale", options.scale);
    arguments.option("dropout", options.dropout);
    arguments.option("seed", options.seed);
    arguments.option("needWeights", options.need_weights);
    arguments.option("averageWeights", options.average_weights);
    arguments.option("enableGqa", options.enable_gqa);
    arguments.option("fullyMasked", options.fully_masked, kFullyMaskedNames);
    call.traced = arguments.option("trace", options.trace);
    softcap_option(arguments, options.softcap);
    arguments.option("window", options.window);
    arguments.option("queryOffset", options.query_offset);
    KeyValueView past;
    const bool has_past = arguments.group("past", [&] {
      past.key = arguments.tensor("key");
      past.value = arguments.tensor("value");
    });
    if (has_past) options.past = past;
    arguments.option("outputPresent", options.output_present);
    arguments.option("forBackward", options.for_backward);
  });
  return call;
}

detail::AttentionBuffers allocate_results(const detail::AttentionPlan& plan, bool traced, Result& result) {
  detail::AttentionBuffers buffers;
  buffers.output = result.add(plan.output);
  if (plan.spec.need_weights) {
    Shape shape;  // as in torch, the mean over heads has no head dimension
    for (std::size_t axis = 0; axis < plan.weights.rank(); ++axis)
      if (!plan.spec.average_weights || axis + 3 != plan.weights.rank()) shape.push_back(plan.weights[axis]);
    buffers.weights = result.add(Field::weights, shape);
  }
  if (plan.spec.output_present) {
    buffers.present_key = result.add(Field::present_key, plan.present_key);
    buffers.present_value = result.add(Field::present_value, plan.present_value);
  }
  result.set_traced(traced);
  for (std::size_t i = 0; i < plan.trace_shapes.size(); ++i)
    if (plan.spec.trace.has(static_cast<TraceName>(i)))
      buffers.trace[i] = result.add(Field::trace, plan.trace_shapes[i], -1, static_cast<std::int32_t>(i));
  return buffers;
}

}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_attention) {
  using namespace attn::bindings;
  define_function<scaled_dot_product_attention>("scaledDotProductAttention", "attention");
}
