#include <algorithm>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/layers/encoder_backward.hpp"
#include "attn/models/position_buckets.hpp"
#include "attn/models/stack.hpp"
#include "attn/ops/attention_core.hpp"

namespace attn::detail {

Stack::Kept Stack::run_and_keep(const EncoderPlan& plan, const ModelInputs& inputs, const float* x, const ForwardRandom& random,
                                const EncoderBuffers& buffers, Scratch& scratch) const {
  Kept kept;
  kept.positions = score_positions(inputs, scratch, &random);
  kept.layers = layers_.run_and_keep(plan, {x, plan.output}, random, kept.positions.bias, buffers);
  return kept;
}

void Stack::backward(const Kept& kept, std::optional<std::int64_t> first, bool wants_parameters, const std::vector<TraceBuffers>& traces, float* of_x,
                     Gradients& gradients, Scratch& scratch) const {
  EncoderGradientBuffers to{.grad_x = of_x, .traces = traces, .first_layer = static_cast<std::size_t>(first.value_or(0))};
  const auto zeros = [&](std::size_t size) {
    float* const values = scratch.take(size);
    fill_zeros(values, size);
    return values;
  };
  float* const of_buckets = first ? nullptr : gradients.at("position_bias.weight");
  const PositionBias& bias = kept.layers->layers.front().attention.position_bias;
  const auto heads = static_cast<std::size_t>(config_.num_attention_heads);
  if (of_buckets != nullptr) to.position_bias = zeros(heads * size_of(bias.row, 1));
  const std::size_t relative = kept.positions.layers != nullptr && wants_parameters && !first ? relative_.size() : 0;
  if (relative > 0) to.relative = zeros(relative);

  layers_.backward(*kept.layers, "encoder.", gradients, to, scratch);

  if (relative > 0) {
    float* const table = scratch.take(relative);
    if (!counts()) relative_.get(table);
    if (config_.relative.has_norm)
      relative_norm_.backward(to.relative, table, config_.relative.rows(), to.relative, "relative_norm.", gradients, scratch);
    if (float* const sums = gradients.at("relative_embeddings.weight"); sums != nullptr && !counts())
      kernels::best().add_row(sums, to.relative, sums, relative);
  }
  if (of_buckets == nullptr || counts()) return;
  const float* from = to.position_bias;
  for (std::size_t head = 0; head < heads; ++head)
    for (std::int64_t distance = -bias.row / 2; distance < bias.row / 2; ++distance) of_buckets[bucket_of(distance) * heads + head] += *from++;
}

}  // namespace attn::detail
