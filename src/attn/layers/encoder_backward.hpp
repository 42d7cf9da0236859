#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "attn/layers/encoder_forward.hpp"

// Options and results of the backward of an encoder: a single layer, a stack, or a classifier on top.
namespace attn {

/// Options for backward() of TransformerEncoderLayer, TransformerEncoder and TransformerClassifier.
struct EncoderBackwardOptions {
  /// Intermediate results whose gradients to return, with the names and shapes of the forward's trace. Each is the gradient of the value that
  /// the trace shows; for `output`, `ff_hidden` and `ff_output` that is the value before dropout.
  std::optional<EncoderTraceOptions> trace = std::nullopt;
};

/// Result of backward() of TransformerEncoderLayer, TransformerEncoder and TransformerClassifier. N: rank of input and output.
template <std::size_t N>
struct EncoderGradients {
  TensorOf<N> grad_x;  ///< (B,L,E)
  /// By layer and name, on request.
  std::optional<std::map<std::int64_t, std::map<TraceName, TensorOf<kAnyBeside<N>>>>> trace = std::nullopt;
};

namespace detail {

struct KeptEncoder;  // layers/kept.hpp, like the next two
struct KeptLayer;
class CaptureBuffers;

/// Everything about a backward that follows from its forward and options, checked.
struct EncoderBackwardPlan {
  Shape x = {};
  std::int64_t layers = 0;
  bool has_trace = false;
  Trace names = {};                       ///< requested traces
  std::vector<std::int64_t> traced = {};  ///< layers to trace, unique, ascending
  std::array<Shape, kTraceNames.size()> trace_shapes = {};
};

/// Destinations of a backward's results.
struct EncoderGradientBuffers {
  float* grad_x = nullptr;
  std::vector<TraceBuffers> traces = {};  ///< by layer, null if not requested; empty without traces
  float* position_bias = nullptr;         ///< (H,row) in the layout of PositionBias, accumulated; null if not requested
  float* relative = nullptr;              ///< (count,E), of RelativePositions::x, accumulated over all layers
  std::size_t first_layer = 0;            ///< of a stack: layers below it are skipped, grad_x is the gradient of its input
};

/// counted() results of a plan, for its dry run.
EncoderGradientBuffers counted_buffers(const EncoderBackwardPlan& plan);

/// Allocates the results that the plan specifies and lets run(buffers) fill them.
template <std::size_t N, class Run>
EncoderGradients<N> run_encoder_backward_plan(const EncoderBackwardPlan& plan, Run run) {
  EncoderGradients<N> result{empty<N>(plan.x)};
  EncoderGradientBuffers buffers{result.grad_x.data(), {}};
  if (plan.has_trace) {
    buffers.traces.resize(static_cast<std::size_t>(plan.layers));
    make_traces<N>(plan, result.trace.emplace(), [&](std::size_t layer, std::size_t name) -> float*& { return buffers.traces[layer][name]; });
  }
  run(buffers);
  return result;
}

}  // namespace detail
}  // namespace attn
