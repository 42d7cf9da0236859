#pragma once

#include <array>

#include "attn/ops/attention_core.hpp"

// The gradients of attention_core. Internal: ops and layers share it.
namespace attn::detail {

struct AttentionBackwardInputs {
  Heads<const float> query, key, value;  ///< as the forward had them
  Heads<const float> grad;               ///< of the context
  const float* score_weight = nullptr;   ///< (D), as AttentionInputs has it
  PositionBias position_bias = {};
  Dropout dropout = {};
};

/// Where gradients go; traces are null where not asked for.
struct AttentionGradientHeads {
  Heads<float> query, key, value;  ///< where there is a score_weight, rows of key lie side by side
  float* score_weight = nullptr;   ///< (D), null without one
  std::array<float*, kTraceNames.size()> trace{};
  float *relative_keys = nullptr, *relative_queries = nullptr;  ///< of RelativePositions, (count,width), of the parts that scores have: added to
  float* position_bias = nullptr;  ///< (H,row) of the inputs' bias, row / 2 on both sides of its data: added to; null: not asked for
};

/// Adds what attention_backward_core allocates.
void add_backward_memory(const AttentionSpec& spec, const AttentionSizes& sizes, bool additive, MemoryEstimate& memory);

/// Gradients of query, key, value and score_weight, and of scores, masked_scores, probabilities, weights and weighted_values where a trace is
/// asked for.
void attention_backward_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs,
                             const AttentionGradientHeads& to, Scratch& scratch);

}  // namespace attn::detail
