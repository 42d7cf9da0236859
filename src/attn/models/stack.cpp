#include "attn/models/stack.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/models/position_buckets.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/positions.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

TransformerEncoderOptions stack_options(const ModelConfig& config) {
  return {.layer = {.d_model = config.hidden_size,
                    .nhead = config.num_attention_heads,
                    .dim_feedforward = config.intermediate_size,
                    .dropout = 0,
                    .activation = config.hidden_act,
                    .layer_norm_eps = config.layer_norm_eps,
                    .norm_first = config.norm_first,
                    .norm = config.norm,
                    .gated = config.gated,
                    .num_key_value_heads = config.num_key_value_heads > 0 ? std::optional(config.num_key_value_heads) : std::nullopt,
                    .head_dim = config.head_width()},
          .num_layers = config.stored_layers(),
          .final_norm = config.norm_first};
}

/// Each row is its own sequence.
Dropout position_dropout(const ForwardRandom& random, std::size_t layer) {
  return dropout_at(random, 0, DropoutSite::relative_positions, static_cast<std::uint32_t>(layer));
}

}  // namespace

Stack::Stack(std::string_view op, const ModelConfig& config) : config_(config), layers_(Uninitialized{}, op, stack_options(config)) {
  layers_.set_variant(config.layer);
  if (config.normed_input) layers_.leave_out_norm1(0);
  const RelativeConfig& relative = config.relative;
  if (relative.span > 0) relative_ = {static_cast<std::size_t>(relative.rows()), static_cast<std::size_t>(config.hidden_size)};
  if (relative.has_norm) relative_norm_ = {NormKind::layer_norm, config.hidden_size, true, config.layer_norm_eps};
  for (std::size_t layer = 0; layer < layers_.layers_.size() && config.clears_padding; ++layer)
    layers_.set_attention_defaults(
        layer, {.disentangled = {relative.c2p, relative.p2c, relative.shares_projections, relative.scale_factor}, .queries_are_padded = true});
  if (config.hidden_groups > 0)
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) layers_.add_use(static_cast<std::size_t>(config.stored_layer(i)));
}

void Stack::visit_parameters(ParameterVisitor& visitor) {
  if (config_.position_buckets > 0)
    visitor.add("position_bias.weight",
                {.shape = {config_.position_buckets, config_.num_attention_heads}, .kind = ParameterKind::table, .vector = &position_bias_});
  visitor.add_table("relative_embeddings.weight", relative_);
  visitor.part("relative_norm.", relative_norm_);
  visitor.part("encoder.", layers_);
}

void Stack::make_tables() {
  const std::int64_t width = config_.head_width();
  std::map<std::pair<double, bool>, std::shared_ptr<const RotaryTable>> tables;
  for (std::size_t layer = 0; layer < config_.distances.size(); ++layer) {
    const auto& [theta, window, unscaled] = config_.distances[layer];  // same width on both sides
    const RopeScaling scaling = unscaled ? RopeScaling{} : config_.rope;
    auto& table = tables[{theta, unscaled}];
    if (!table)
      table = std::make_shared<const RotaryTable>(rope_frequencies(theta, scaling, config_.rotary_width > 0 ? config_.rotary_width : width),
                                                  config_.max_position_embeddings, width, scaling.magnitude);
    layers_.set_attention_defaults(layer, {.softcap = config_.attention_softcap, .window = {window, window}, .rotary = Rotary(table)});
  }
}

EncoderPlan Stack::plan(std::string_view op, const ModelInputs& inputs, const EncoderForwardOptions& forward, KeyValueCache* cache) const {
  return layers_.plan(op, {nullptr, {inputs.shape[0], inputs.shape[1], config_.hidden_size}}, forward, inputs.runs, cache);
}

std::size_t Stack::packed_positions() const { return kernels::packed_size(kernels::best(is_quantized()).nr, relative_.rows(), relative_.width()); }

void Stack::add_relative_layers(ScorePositions& positions, Scratch& scratch, const ForwardRandom* random) const {
  const bool keeps = random != nullptr;
  if (!keeps) positions.layers = relative_layers_.get();
  if (positions.layers != nullptr) return;
  const Scratch::Frame frame(scratch);
  const std::int64_t rows = config_.relative.rows();
  const std::size_t size = relative_.size(), packed = packed_positions();
  float* const normed = scratch.take(size);
  if (!counts()) relative_.get(normed);
  relative_norm_.forward(normed, rows, normed);
  auto layers = std::make_unique<RelativeLayers>();
  float* const more = keeps ? nullptr : scratch.take(size);
  for (const TransformerEncoderLayer& layer : layers_.layers_) {
    float* const keys = layers->emplace_back(packed + (keeps ? 3 : 1) * size).data();
    float* const queries = keys + packed;
    float* x = normed;
    if (keeps) {
      x = queries + 2 * size;
      copy_values(normed, size, x);
      drop_rows(position_dropout(*random, layers->size() - 1), x, rows, 1, config_.hidden_size);
    }
    layer.self_attn_.project_positions(x, rows, keys, queries, keeps ? queries + size : more, scratch);
  }
  if (keeps || counts())
    positions.layers = (positions.own_layers = std::move(layers)).get();
  else
    positions.layers = relative_layers_.publish(std::move(layers));
}

ScorePositions Stack::relative_positions(std::int64_t longest, Scratch& scratch, const ForwardRandom* random) const {
  const RelativeConfig& relative = config_.relative;
  const std::size_t size = relative_.size();
  ScorePositions positions;
  add_relative_layers(positions, scratch, random);
  for (std::int64_t distance = 1 - longest; distance < longest; ++distance)
    positions.rows.push_back(static_cast<std::int32_t>(relative.row(distance)));
  for (const AlignedFloats& numbers : *positions.layers) {
    const float *const keys = numbers.data(), *const queries = keys + packed_positions();
    positions.relative.push_back({.key_panels = relative.c2p ? keys : nullptr,
                                  .queries = relative.p2c ? queries : nullptr,
                                  .width = config_.hidden_size,
                                  .rows = positions.rows.data() + longest - 1,
                                  .count = relative.rows(),
                                  .x = random != nullptr ? queries + 2 * size : nullptr,
                                  .keys = relative.c2p && random != nullptr ? queries + size : nullptr});
  }
  for (std::size_t layer = 0; layer < positions.relative.size() && random != nullptr; ++layer)
    positions.relative[layer].dropout = position_dropout(*random, layer);
  positions.bias.relative = positions.relative.data();
  return positions;
}

ScorePositions Stack::score_positions(const ModelInputs& inputs, Scratch& scratch, const ForwardRandom* random) const {
  const FloatEnvironment environment;
  const bool by_distance = config_.position_buckets > 0 || config_.alibi;
  if (!by_distance && !(config_.relative.c2p || config_.relative.p2c)) return {};
  const std::int64_t longest = longest_of(inputs);
  if (longest == 0) return {};
  if (!by_distance) return relative_positions(longest, scratch, random);
  const auto heads = static_cast<std::size_t>(config_.num_attention_heads);
  float* const bias = scratch.take(heads * 2, static_cast<std::size_t>(longest));
  const auto row = static_cast<std::size_t>(longest + 1);
  float* const slopes = config_.alibi ? scratch.take(heads, row) : nullptr;
  if (slopes != nullptr) alibi_bias(config_.num_attention_heads, 1, longest + 1, slopes);
  float* to = bias;
  for (std::size_t head = 0; head < heads && !counts(); ++head)
    for (std::int64_t distance = -longest; distance < longest; ++distance)
      *to++ =
          slopes != nullptr ? slopes[head * row + static_cast<std::size_t>(std::abs(distance))] : position_bias_[bucket_of(distance) * heads + head];
  return {.bias = {bias + longest, 2 * longest}};
}

void Stack::run(const EncoderPlan& plan, const ModelInputs& inputs, const float* x, const EncoderBuffers& buffers, Scratch& scratch) const {
  layers_.run(plan, {x, plan.output}, {}, score_positions(inputs, scratch, nullptr).bias, buffers);
}

}  // namespace attn::detail
