#include "attn/layers/transformer_encoder.hpp"

#include <type_traits>
#include <utility>

#include "attention_options.hpp"
#include "attn/layers/transformer_classifier.hpp"
#include "attn/layers/transformer_encoder_layer.hpp"
#include "define.hpp"
#include "encoder_forward.hpp"
#include "rotary_options.hpp"

namespace attn::bindings {
namespace {

void layer_members(Arguments& arguments, TransformerEncoderLayerOptions& options) {
  arguments.require("dModel", options.d_model);
  arguments.require("nhead", options.nhead);
  arguments.option("dimFeedforward", options.dim_feedforward);
  arguments.option("dropout", options.dropout);
  arguments.option("activation", options.activation, kActivationNames);
  arguments.option("layerNormEps", options.layer_norm_eps);
  arguments.option("normFirst", options.norm_first);
  arguments.option("bias", options.bias);
  arguments.option("norm", options.norm, kNormKindNames);
  arguments.option("gated", options.gated);
  arguments.option("numKeyValueHeads", options.num_key_value_heads);
  arguments.option("headDim", options.head_dim);
  options.rotary = rotary_options(arguments, "rotary");
  arguments.option("window", options.window);
  softcap_option(arguments, options.softcap);
}

void encoder_members(Arguments& arguments, TransformerEncoderOptions& options) {
  layer_members(arguments, options.layer);
  arguments.require("numLayers", options.num_layers);
  arguments.option("finalNorm", options.final_norm);
}

auto layer_options(Arguments& arguments) {
  TransformerEncoderLayerOptions options;
  arguments.require_group("options", [&] { layer_members(arguments, options); });
  return options;
}

auto encoder_options(Arguments& arguments) {
  TransformerEncoderOptions options;
  arguments.require_group("options", [&] { encoder_members(arguments, options); });
  return options;
}

auto classifier_options(Arguments& arguments) {
  TransformerClassifierOptions options;
  arguments.require_group("options", [&] {
    encoder_members(arguments, options.encoder);
    arguments.require("numClasses", options.num_classes);
    arguments.option("pooling", options.pooling, kClassifierPoolingNames);
  });
  return options;
}

EncoderForwardOptions forward_options(Arguments& arguments) {
  EncoderForwardOptions options;
  arguments.group("options", [&] {
    arguments.option("mask", options.mask);
    arguments.option("keyPaddingMask", options.key_padding_mask);
    arguments.option("isCausal", options.is_causal);
    arguments.option("fullyMasked", options.fully_masked, kFullyMaskedNames);
    arguments.option("outputAttentions", options.output_attentions);
    arguments.option("outputHiddenStates", options.output_hidden_states);
    options.trace = trace_option(arguments);
    arguments.option("queryOffset", options.query_offset);
    arguments.option("forBackward", options.for_backward);
  });
  return options;
}

template <class Layer>
void encoder_forward(Arguments& arguments, Work<Layer> work) {
  const TensorView x = arguments.tensor("x");
  EncoderForwardOptions options = forward_options(arguments);
  work([&](const Layer& self, Result& result) {
    const detail::EncoderPlan plan = self.plan(x, options);
    const detail::EncoderBuffers buffers = allocate_results(plan, result);
    if constexpr (std::is_same_v<Layer, TransformerClassifier>)
      self.run(plan, x, buffers, result.add(Field::logits, self.logits_shape(plan)));
    else
      self.run(plan, x, buffers);
  });
}

template <class Layer>
void encoder_backward(Arguments& arguments, Work<Layer> work) {
  const TensorView grad = arguments.tensor(std::is_same_v<Layer, TransformerClassifier> ? "gradLogits" : "grad");
  EncoderBackwardOptions options;
  arguments.group("options", [&] { options.trace = trace_option(arguments); });
  work([&](Layer& self, Result& result) {
    const detail::EncoderBackwardPlan plan = self.plan_backward(grad, options);
    detail::EncoderGradientBuffers to{.grad_x = result.add("gradX", plan.x)};
    if (plan.has_trace) to.traces.resize(static_cast<std::size_t>(plan.layers));
    add_traces(plan, result, [&](std::size_t layer, std::size_t name) -> float*& { return to.traces[layer][name]; });
    self.run_backward(grad, to);
  });
}

template <class Layer, auto Options>
void define_encoder(const char* name) {
  define_layer<Layer, Options>(name)
      .template method<encoder_forward<Layer>>("forward", "encoder")
      .template method<encoder_backward<Layer>>("backward", "encoder");
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_transformer_encoder) {
  using namespace attn;
  using namespace attn::bindings;
  define_encoder<TransformerEncoderLayer, bindings::layer_options>("TransformerEncoderLayer");
  define_encoder<TransformerEncoder, bindings::encoder_options>("TransformerEncoder");
  define_encoder<TransformerClassifier, bindings::classifier_options>("TransformerClassifier");
}
