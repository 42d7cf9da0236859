#include "attn/layers/transformer_encoder.hpp"

#include <algorithm>
#include <utility>

namespace attn {
namespace {

constexpr std::string_view kTransformerEncoderOp = "TransformerEncoder";

}  // namespace

TransformerEncoder::TransformerEncoder(detail::Uninitialized, std::string_view op, const TransformerEncoderOptions& options) : options_(options) {
  constexpr std::int64_t kMaxLayers = 10'000;
  if (options.num_layers < 1 || options.num_layers > kMaxLayers)
    detail::fail(ErrorCode::config, op, "num_layers", {"a whole number from 1 to ", kMaxLayers}, {options.num_layers});
  TransformerEncoderLayer first(detail::Uninitialized{}, op, options.layer);
  detail::check_parameter_memory(op, first.parameter_shapes(), options.num_layers);
  layers_.reserve(static_cast<std::size_t>(options.num_layers));
  layers_.push_back(std::move(first));
  for (std::int64_t i = 1; i < options.num_layers; ++i) layers_.push_back(TransformerEncoderLayer(detail::Uninitialized{}, op, options.layer));
  if (options.final_norm) norm_ = {options.layer.norm, options.layer.d_model, options.layer.bias, options.layer.layer_norm_eps};
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderOptions& options)
    : TransformerEncoder(detail::Uninitialized{}, kTransformerEncoderOp, options) {
  create(kTransformerEncoderOp);
}

void TransformerEncoder::visit_parameters(detail::ParameterVisitor& visitor) {
  for (std::size_t i = 0; i < layers_.size(); ++i) visitor.part("layers." + std::to_string(i) + ".", layers_[i]);
  if (options_.final_norm) visitor.part("norm.", norm_);
}

void TransformerEncoder::set_attention_defaults(std::size_t layer, detail::AttentionDefaults defaults) {
  layers_[layer].self_attn_.set_defaults(std::move(defaults));
}

void TransformerEncoder::leave_out_norm1(std::size_t layer) { layers_[layer].norm1_ = detail::Norm::identity(options_.layer.d_model); }

void TransformerEncoder::set_variant(const detail::LayerVariant& variant) {
  for (TransformerEncoderLayer& layer : layers_) layer.set_variant(variant);
  norm_.set_offset(variant.norm_offset);
}

detail::EncoderPlan TransformerEncoder::plan(const TensorView& x, const EncoderForwardOptions& options) const {
  detail::EncoderPlan plan = this->plan(kTransformerEncoderOp, x, options, {});
  if (plan.for_backward) detail::check_float32(kTransformerEncoderOp, "for_backward", is_quantized());
  detail::check_memory(kTransformerEncoderOp, [&] { run(plan, x, detail::counted_buffers(plan)); });
  return plan;
}

detail::EncoderPlan TransformerEncoder::plan(std::string_view op, const TensorView& x, const EncoderForwardOptions& options,
                                             std::span<const detail::SequenceGroup> runs, KeyValueCache* cache) const {
  return layers_.front().plan(op, static_cast<std::int64_t>(depth()), x, options, runs, cache);
}

void TransformerEncoder::run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers) const {
  const detail::ForwardRandom random = next_random();
  if (keeps(plan.for_backward) && !is_quantized()) {
    std::shared_ptr<detail::KeptEncoder> kept = run_and_keep(plan, x, random, {}, buffers);
    if (!detail::counts()) share_gradients()->kept = std::move(kept);
    return;
  }
  run(plan, x, random, {}, buffers);
}

void TransformerEncoder::run(const detail::EncoderPlan& plan, const TensorView& x, const detail::ForwardRandom& random,
                             const detail::PositionBias& position_bias, const detail::EncoderBuffers& buffers) const {
  detail::Scratch scratch = this->scratch();
  const auto size = static_cast<std::size_t>(plan.B * plan.L * plan.E);
  const auto keep_state = [&](std::size_t i, const float* state) {
    if (plan.has_hidden_states) detail::copy_values(state, size, buffers.hidden_states[i]);
  };
  const float* state = detail::without_gaps(x, scratch);
  for (std::size_t i = 0; i < depth(); ++i) {
    if (const float* const patched = plan.patch.of(i).hidden_state; patched != nullptr) state = patched;
    keep_state(i, state);
    layers_[layer_at(i)].run(plan, static_cast<std::uint32_t>(i), state, random, position_bias, buffers.layer(i), scratch, buffers.output);
    state = buffers.output;
  }
  if (options_.final_norm) norm_.forward(buffers.output, plan.B * plan.L, buffers.output);
  keep_state(depth(), buffers.output);
}

}  // namespace attn
