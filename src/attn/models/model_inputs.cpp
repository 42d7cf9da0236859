#include "attn/models/model_inputs.hpp"

#include <algorithm>

#include "attn/ops/pooling_backward.hpp"

namespace attn::detail {

std::vector<SequenceGroup> runs_of(const ModelInputs& inputs) {
  if (inputs.runs.empty()) return {{inputs.shape[0], inputs.shape[1]}};
  return {inputs.runs.begin(), inputs.runs.end()};
}

std::int64_t longest_of(const ModelInputs& inputs) {
  std::int64_t longest = 0;
  for (const SequenceGroup& run : runs_of(inputs)) longest = std::max(longest, run.length);
  return longest;
}

void pool_sequences(const ModelInputs& inputs, std::int64_t E, const float* hidden, Pooling pooling, float* pooled, std::int64_t stride,
                    std::int64_t first) {
  for (const auto& [count, length] : runs_of(inputs)) {
    pool(hidden, count, length, E, pooling, inputs.attention_mask, FullyMasked::zero, pooled, stride, first);
    clear_empty(inputs.attention_mask, count, length, E, pooled, stride);
    hidden += count * length * E;
    pooled += count * stride;
  }
}

void pool_sequences_backward(const ModelInputs& inputs, std::int64_t E, const float* grad, std::int64_t stride, const float* hidden, Pooling pooling,
                             float* of_hidden) {
  for (const auto& [count, length] : runs_of(inputs)) {
    pool_backward(grad, stride, hidden, count, length, E, pooling, inputs.attention_mask, FullyMasked::zero, of_hidden);
    // In a sequence without tokens cls takes the first position, whose gradient is 0.
    clear_empty(inputs.attention_mask, count, length, length * E, of_hidden, length * E);
    grad += count * stride;
    hidden += count * length * E;
    of_hidden += count * length * E;
  }
}

void PackedSequences::add_length(std::int64_t length) {
  if (runs.empty() || runs.back().length != length) runs.push_back({0, length});
  ++runs.back().count;
}

}  // namespace attn::detail
