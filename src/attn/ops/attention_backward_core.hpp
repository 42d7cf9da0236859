#pragma once

#include <array>

#include "attn/ops/attention_core.hpp"

// Gradients of attention_core. Internal.
namespace attn::detail {

struct AttentionBackwardInputs {
  Heads<const float> query, key, value;
  Heads<const float> grad;  ///< of the context
  const float* score_weight = nullptr;
  PositionBias position_bias = {};
  Dropout dropout = {};
};

/// Null if not requested.
struct AttentionGradientHeads {
  Heads<float> query, key, value;  ///< with a score_weight, the rows of key must be contiguous
  float* score_weight = nullptr;
  std::array<float*, kTraceNames.size()> trace{};
  /// (count,width), accumulated, if the scores have these parts of RelativePositions.
  float *relative_keys = nullptr, *relative_queries = nullptr;
  /// (H,row), accumulated: head h, query i, key j at h · row + row / 2 + j - i.
  float* position_bias = nullptr;
};

void attention_backward_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs,
                             const AttentionGradientHeads& to, Scratch& scratch);

}  // namespace attn::detail
