#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "attn/layers/encoder_forward.hpp"

// What a backward of an encoder takes and gives, whether it is one layer, a stack or a classifier on top.
namespace attn {

struct EncoderBackwardOptions {
  /// Gradients of these intermediate results, by the names and of the shapes of the forward's trace. Each is that of the number as the trace
  /// shows it: `output`, `ff_hidden` and `ff_output` before their dropout.
  std::optional<EncoderTraceOptions> trace = std::nullopt;
};

/// N: rank of input and output.
template <std::size_t N>
struct EncoderGradients {
  TensorOf<N> grad_x;  ///< (B,L,E)
  /// By layer and name, when asked for.
  std::optional<std::map<std::int64_t, std::map<TraceName, TensorOf<kAnyBeside<N>>>>> trace = std::nullopt;
};

namespace detail {

struct KeptEncoder;  // layers/kept.hpp, as the next
struct KeptLayer;
class KeptPlaces;

/// All of a backward that follows from its forward and from what is asked, checked.
struct EncoderBackwardPlan {
  Shape x = {};
  std::int64_t layers = 0;
  bool has_trace = false;
  Trace names = {};                       ///< traces asked for
  std::vector<std::int64_t> traced = {};  ///< in these layers, each once, rising
  std::array<Shape, kTraceNames.size()> trace_shapes = {};
};

/// Where a backward's results go.
struct EncoderGradientBuffers {
  float* grad_x = nullptr;
  std::vector<std::array<float*, kTraceNames.size()>> traces;  ///< by layer, null where not asked for; or none
  float* position_bias = nullptr;                              ///< (H,row) as PositionBias has it: added to; null: not asked for
  float* relative = nullptr;                                   ///< (count,E), of RelativePositions::x in all layers: added to
  std::size_t first_layer = 0;                                 ///< of a stack: what is below it is left out, grad_x is of its input
};

/// Allocates what the plan says and lets run(buffers) fill it.
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
