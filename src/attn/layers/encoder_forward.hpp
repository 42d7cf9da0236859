#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "attn/memory/key_value_cache.hpp"
#include "attn/ops/attention.hpp"
#include "attn/tensor/results.hpp"

// Options and results of the forward of an encoder: a single layer, a stack, or a classifier on top.
namespace attn {

/// Selects the intermediate results to return, by layer and name.
struct EncoderTraceOptions {
  std::optional<std::vector<std::int64_t>> layers = std::nullopt;  ///< counted from 0; default all
  Trace names = Trace::all();
};

/// Options for forward() of TransformerEncoderLayer, TransformerEncoder and TransformerClassifier.
struct EncoderForwardOptions {
  std::optional<Mask> mask = std::nullopt;              ///< as in AttentionOptions
  std::optional<Mask> key_padding_mask = std::nullopt;  ///< (B,S); a classifier's pooling ignores padding as well
  bool is_causal = false;
  FullyMasked fully_masked = FullyMasked::zero;
  bool output_attentions = false;     ///< return the attention weights of every layer
  bool output_hidden_states = false;  ///< return the input of every layer and the output
  bool for_backward = false;          ///< save the data for backward(), as forwards in train mode do
  std::optional<EncoderTraceOptions> trace = std::nullopt;
  std::optional<std::int64_t> query_offset = std::nullopt;  ///< as in AttentionOptions, for every layer
};

/// Result of TransformerEncoderLayer::forward() and TransformerEncoder::forward(). N: rank of input and output.
template <std::size_t N>
struct EncoderResult {
  TensorOf<N> output;                                      ///< (B,L,E)
  std::optional<std::vector<TensorOf<N + 1>>> attentions;  ///< by layer (B,H,L,L), on request
  std::optional<std::vector<TensorOf<N>>> hidden_states;   ///< layers + 1 of (B,L,E), the last equals output; on request
  /// AttentionTrace by layer, on request.
  std::optional<std::map<std::int64_t, std::map<TraceName, TensorOf<kAnyBeside<N>>>>> trace;
};

namespace detail {

/// Values that replace those of a layer; null for none.
struct PatchedValues {
  const float* hidden_state = nullptr;                                  ///< (B,L,E), the layer's input
  const float* merged = nullptr;                                        ///< (B,L,H·Dv), the heads' results
  const float *q_proj = nullptr, *k_proj = nullptr, *v_proj = nullptr;  ///< (B,L,H·D), (B,L,Hkv·D), (B,L,Hkv·Dv)
  const float* weights = nullptr;                                       ///< (B,H,L,L)
};

/// Changes that a caller makes inside a forward. Refers to the caller's memory.
struct EncoderPatch {
  const float* head_mask = nullptr;        ///< (layers,H), null for none
  std::vector<PatchedValues> layers = {};  ///< by layer, empty for none

  PatchedValues of(std::size_t layer) const { return layers.empty() ? PatchedValues{} : layers[layer]; }
};

/// Everything about the forward of an encoder that follows from shapes and options, checked before anything is allocated.
/// Refers to the options' masks.
struct EncoderPlan {
  std::int64_t B = 0, L = 0, E = 0, layers = 0;
  AttentionPlan attention;  ///< of every layer, with the traces that any of them returns
  Shape output = {};
  bool has_attentions = false, has_hidden_states = false, has_trace = false, for_backward = false;
  Trace names = {};                       ///< requested traces
  std::vector<std::int64_t> traced = {};  ///< layers to trace, unique, ascending
  std::array<Shape, kTraceNames.size()> trace_shapes = {};
  EncoderPatch patch = {};
  KeyValueCache* cache = nullptr;  ///< holds the keys and values of earlier tokens, and gets those of the new ones

  /// Padding mask for pooling; null if there is none.
  const MaskView* padding() const { return attention.spec.key_padding_mask ? &*attention.spec.key_padding_mask : nullptr; }
};

/// Destinations of one layer's intermediate results, or of their gradients; null if not requested.
using TraceBuffers = std::array<float*, kTraceNames.size()>;

/// Destinations of one layer's results; null if not requested.
struct LayerBuffers {
  float* attentions = nullptr;
  TraceBuffers trace{};
  /// Values that backward needs and the forward overwrites: log_sum_exp as in AttentionBuffers; linear1 and linear_gate before the
  /// activation, (B,L,F) each.
  float *log_sum_exp = nullptr, *linear1 = nullptr, *linear_gate = nullptr;
};

struct EncoderBuffers {
  float* output = nullptr;
  std::vector<float*> hidden_states = {};  ///< layers + 1, or empty
  std::vector<LayerBuffers> layers = {};   ///< empty if no results of the layers are requested

  LayerBuffers layer(std::size_t index) const { return layers.empty() ? LayerBuffers{} : layers[index]; }
};

/// Calls call(layer, trace number) for the traces of a plan.
template <class Plan, class Call>
void for_each_trace(const Plan& plan, Call call) {
  for (const std::int64_t layer : plan.traced)
    for (std::size_t i = 0; i < kTraceNames.size(); ++i)
      if (plan.names.has(static_cast<TraceName>(i))) call(static_cast<std::size_t>(layer), i);
}

/// Allocates the traces of a plan in maps by layer and name and stores their pointers in place(layer, trace number).
template <std::size_t N, class Plan, class Place>
void make_traces(const Plan& plan, std::map<std::int64_t, std::map<TraceName, TensorOf<kAnyBeside<N>>>>& traces, Place place) {
  for_each_trace(plan, [&](std::size_t layer, std::size_t i) {
    auto& of_layer = traces[static_cast<std::int64_t>(layer)];
    place(layer, i) = of_layer.emplace(static_cast<TraceName>(i), empty<kAnyBeside<N>>(plan.trace_shapes[i])).first->second.data();
  });
}

/// counted() results of a plan, for its dry run.
EncoderBuffers counted_buffers(const EncoderPlan& plan);

/// Allocates the results that the plan specifies and lets run(buffers) fill them.
template <std::size_t N, class Run>
EncoderResult<N> run_encoder_plan(const EncoderPlan& plan, Run run) {
  EncoderResult<N> result{empty<N>(plan.output), {}, {}, {}};
  EncoderBuffers buffers{result.output.data(), {}, {}};
  if (plan.has_attentions || plan.has_trace) buffers.layers.resize(static_cast<std::size_t>(plan.layers));
  if (plan.has_attentions) {
    result.attentions.emplace().reserve(buffers.layers.size());
    for (LayerBuffers& layer : buffers.layers) {
      result.attentions->push_back(empty<N + 1>(plan.attention.weights));
      layer.attentions = result.attentions->back().data();
    }
  }
  if (plan.has_hidden_states) {
    result.hidden_states.emplace().reserve(buffers.layers.size() + 1);
    for (std::int64_t i = 0; i <= plan.layers; ++i) {
      result.hidden_states->push_back(empty<N>(plan.output));
      buffers.hidden_states.push_back(result.hidden_states->back().data());
    }
  }
  if (plan.has_trace)
    make_traces<N>(plan, result.trace.emplace(), [&](std::size_t layer, std::size_t name) -> float*& { return buffers.layers[layer].trace[name]; });
  run(buffers);
  return result;
}

}  // namespace detail

}  // namespace attn
