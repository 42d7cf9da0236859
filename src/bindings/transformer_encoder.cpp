#include "attn/layers/transformer_encoder.hpp"

#include <type_traits>
#include <utility>

#include "attention_options.hpp"
#include "attn/layers/transformer_classifier.hpp"
#include "attn/layers/transformer_encoder_layer.hpp"
#include "define.hpp"

namespace attn::bindings {
namespace {

/// Members that a layer, a stack of them and a classifier share.
template <class Options>
void layer_members(Arguments& arguments, Options& options) {
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
}

template <class Options>
void encoder_members(Arguments& arguments, Options& options) {
  layer_members(arguments, options);
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
    encoder_members(arguments, options);
    arguments.require("numClasses", options.num_classes);
    arguments.option("pooling", options.pooling, kPoolingNames);
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
    EncoderTraceOptions trace;
    const bool traced = arguments.group("trace", [&] {
      arguments.option("layers", trace.layers);
      arguments.option("names", trace.names, kTraceNames);
    });
    if (traced) options.trace = std::move(trace);
  });
  return options;
}

/// Buffers in the result for everything that the plan says.
detail::EncoderBuffers allocate_results(const detail::EncoderPlan& plan, Result& result) {
  const auto layers = static_cast<std::int32_t>(plan.layers);
  detail::EncoderBuffers buffers{result.add(plan.output), {}, std::vector<detail::LayerBuffers>(static_cast<std::size_t>(plan.layers))};
  if (plan.has_attentions)
    for (std::int32_t i = 0; i < layers; ++i)
      buffers.layers[static_cast<std::size_t>(i)].attentions = result.add(Field::attentions, plan.attention.weights, i);
  if (plan.has_hidden_states)
    for (std::int32_t i = 0; i <= layers; ++i) buffers.hidden_states.push_back(result.add(Field::hidden_states, plan.output, i));
  result.set_traced(plan.has_trace);
  for (const std::int64_t layer : plan.traced)
    for (std::size_t i = 0; i < kTraceNames.size(); ++i)
      if (plan.names.has(static_cast<TraceName>(i)))
        buffers.layers[static_cast<std::size_t>(layer)].trace[i] =
            result.add(Field::trace, plan.trace_shapes[i], static_cast<std::int32_t>(layer), static_cast<std::int32_t>(i));
  return buffers;
}

template <class Layer>
auto forward(Arguments& arguments) {
  const TensorView x = arguments.tensor("x");
  EncoderForwardOptions options = forward_options(arguments);
  return [x, options = std::move(options)](const Layer& self, Result& result) {
    const detail::EncoderPlan plan = self.plan(x, options);
    const detail::EncoderBuffers buffers = allocate_results(plan, result);
    if constexpr (std::is_same_v<Layer, TransformerClassifier>)
      self.run(plan, x, buffers, result.add(Field::logits, self.logits_shape(plan)));
    else
      self.run(plan, x, buffers);
  };
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_transformer_encoder) {
  using namespace attn;
  using namespace attn::bindings;
  define_layer<TransformerEncoderLayer, bindings::layer_options>("TransformerEncoderLayer")
      .method<forward<TransformerEncoderLayer>>("forward", "encoder");
  define_layer<TransformerEncoder, bindings::encoder_options>("TransformerEncoder").method<forward<TransformerEncoder>>("forward", "encoder");
  define_layer<TransformerClassifier, bindings::classifier_options>("TransformerClassifier")
      .method<forward<TransformerClassifier>>("forward", "encoder");
}
