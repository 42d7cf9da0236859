#include <algorithm>
#include <utility>

#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/kept.hpp"
#include "attn/layers/transformer_encoder.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {
namespace {

constexpr std::string_view kTransformerEncoderBackwardOp = "TransformerEncoder";

using detail::size_of;

}  // namespace

std::shared_ptr<detail::KeptEncoder> TransformerEncoder::run_and_keep(const detail::EncoderPlan& plan, const TensorView& x,
                                                                      const detail::ForwardRandom& random, const detail::PositionBias& position_bias,
                                                                      const detail::EncoderBuffers& buffers) const {
  auto kept = std::make_shared<detail::KeptEncoder>(plan, random);
  const std::size_t size = size_of(plan.B * plan.L, plan.E);
  const std::size_t bias = size_of(plan.attention.spec.num_heads, position_bias.row);
  const std::size_t head_mask = plan.patch.head_mask != nullptr ? size_of(plan.layers, plan.attention.spec.num_heads) : 0;
  std::uint64_t numbers = bias + head_mask + (options_.final_norm ? 2 : 1) * size;
  numbers += depth() * layers_.front().kept_size(plan);
  kept->numbers = AlignedFloats(numbers);
  float* to = kept->numbers.data();
  const auto take = [&](std::size_t count) { return std::exchange(to, to + count); };
  detail::PositionBias kept_bias = position_bias;
  if (position_bias.data != nullptr) {
    const std::int64_t middle = position_bias.row / 2;
    float* const copy = take(bias);
    detail::copy_values(position_bias.data - middle, bias, copy);
    kept_bias.data = copy + middle;
  }
  float* const kept_head_mask = head_mask > 0 ? take(head_mask) : nullptr;
  if (head_mask > 0) detail::copy_values(plan.patch.head_mask, head_mask, kept_head_mask);
  if (options_.final_norm) kept->last = take(size);
  kept->output = take(size);

  detail::EncoderPlan with_states = plan;
  with_states.has_hidden_states = true;
  detail::EncoderBuffers with_kept = buffers;
  with_kept.layers.resize(depth());
  with_kept.hidden_states.resize(depth() + 1);
  detail::CaptureBuffers places;
  kept->layers.resize(depth());
  for (std::size_t i = 0; i < depth(); ++i) {
    detail::KeptLayer& layer = kept->layers[i];
    to = layers_[layer_at(i)].place_kept(plan, static_cast<std::uint32_t>(i), *kept, kept_bias, layer, to);
    if (head_mask > 0) layer.attention.patch.head_mask = kept_head_mask + i * size_of(1, plan.attention.spec.num_heads);
    layers_[layer_at(i)].keep(plan, layer, with_kept.layers[i], places);
    places.keep(with_kept.hidden_states[i], layer.x, size);
  }
  const TraceName last = options_.layer.norm_first ? TraceName::ff_residual : TraceName::norm2;
  if (kept->last != nullptr) places.keep(with_kept.layers.back().trace[static_cast<std::size_t>(last)], kept->last, size);
  places.keep(with_kept.hidden_states.back(), kept->output, size);
  run(with_states, x, random, position_bias, with_kept);
  places.copy();
  return kept;
}

detail::EncoderBackwardPlan TransformerEncoder::plan_backward(const TensorView& grad, const EncoderBackwardOptions& options) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerEncoderBackwardOp);
  if (grad.shape != kept.x) detail::fail(ErrorCode::shape, kTransformerEncoderBackwardOp, "grad", {kept.x}, {grad.shape});
  detail::EncoderBackwardPlan plan = layers_.front().plan_backward(kTransformerEncoderBackwardOp, kept, options);
  detail::check_memory(kTransformerEncoderBackwardOp, [&] { gradients_of(grad, detail::counted_buffers(plan)); });
  return plan;
}

void TransformerEncoder::run_backward(const TensorView& grad, const detail::EncoderGradientBuffers& to) {
  detail::Gradients gradients = gradients_of(grad, to);
  share_gradients()->gradients.add(gradients);
  share_gradients()->kept.reset();
}

detail::Gradients TransformerEncoder::gradients_of(const TensorView& grad, const detail::EncoderGradientBuffers& to) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerEncoderBackwardOp);
  detail::Gradients gradients = share_gradients()->gradients.staging(parameter_shapes());
  detail::Scratch scratch = this->scratch();
  detail::copy_rows(grad, to.grad_x);
  backward(kept, "", gradients, to, scratch);
  return gradients;
}

void TransformerEncoder::backward(const detail::KeptEncoder& kept, const std::string& prefix, detail::Gradients& gradients,
                                  const detail::EncoderGradientBuffers& to, detail::Scratch& scratch) const {
  if (options_.final_norm) norm_.backward(to.grad_x, kept.last, kept.B * kept.L, to.grad_x, prefix + "norm.", gradients, scratch);
  std::size_t first = 0;  // in the order of execution
  while (first < depth() && layer_at(first) < to.first_layer) ++first;
  std::vector<bool> is_used(layers_.size());
  detail::Gradients more, none;  // for layers that run again; for layers below to.first_layer
  for (std::size_t i = depth(); i-- > first;) {
    const std::size_t at = layer_at(i);
    const std::string name = prefix + "layers." + std::to_string(at) + ".";
    const bool is_again = is_used[at];
    if (is_again) {
      std::map<std::string, Shape> shapes = gradients.shapes(true);
      std::erase_if(shapes, [&](const auto& entry) { return !entry.first.starts_with(name); });
      more.reserve(shapes);
    }
    detail::Gradients& to_add = at < to.first_layer ? none : is_again ? more : gradients;
    layers_[at].backward(kept, static_cast<std::uint32_t>(i), to.grad_x, name, to_add, to, scratch);
    if (is_again) {
      if (!detail::counts()) gradients.add(more);
      more.zero();
    }
    is_used[at] = true;
    if (kept.layers[i].is_patched) detail::fill_zeros(to.grad_x, size_of(kept.B * kept.L, kept.E));
  }
}

}  // namespace attn
