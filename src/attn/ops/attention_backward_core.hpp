#pragma once

#include <array>

#include "attn/ops/attention_core.hpp"

// Gradients of attention_core. Internal: shared by ops and layers.
namespace attn::detail {

struct AttentionBackwardInputs {
  Heads<const float> query, key, value;  ///< as in the forward
  Heads<const float> grad;               ///< gradient of the context
  const float* score_weight = nullptr;   ///< (D), as in AttentionInputs
  PositionBias position_bias = {};
  Dropout dropout = {};
};

/// Output buffers for gradients; a trace is null if not requested.
struct AttentionGradientHeads {
  Heads<float> query, key, value;  ///< with a score_weight, the rows of key must be contiguous
  float* score_weight = nullptr;   ///< (D), null if there is none
  std::array<float*, kTraceNames.size()> trace{};
  /// (count,width), for the parts of RelativePositions that the scores have: gradients are added to them.
  float *relative_keys = nullptr, *relative_queries = nullptr;
  /// (H,row), the gradient for the position bias of head h, query i and key j is added at h · row + row / 2 + j - i; null if not requested.
  float* position_bias = nullptr;
};

/// Adds the memory that attention_backward_core allocates.
void add_backward_memory(const AttentionSpec& spec, const AttentionSizes& sizes, bool additive, MemoryEstimate& memory);

/// Computes the gradients of query, key, value and score_weight and, if their traces are requested, those of scores, masked_scores,
/// probabilities, weights and weighted_values.
void attention_backward_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs,
                             const AttentionGradientHeads& to, Scratch& scratch);

}  // namespace attn::detail
