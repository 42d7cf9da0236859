#include "attn/layers/encoder_backward.hpp"
#include "attn/layers/kept.hpp"
#include "attn/layers/transformer_classifier.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/pooling_backward.hpp"

namespace attn {
namespace {

constexpr std::string_view kTransformerClassifierBackwardOp = "TransformerClassifier";

using detail::size_of;

}  // namespace

detail::EncoderBackwardPlan TransformerClassifier::plan_backward(const TensorView& grad_logits, const EncoderBackwardOptions& options) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerClassifierBackwardOp);
  Shape logits = kept.x;
  logits[logits.rank() - 1] = options_.num_classes;
  if (options_.pooling != Pooling::none) logits = logits.rank() == 3 ? Shape{kept.B, options_.num_classes} : Shape{options_.num_classes};
  if (grad_logits.shape != logits) detail::fail(ErrorCode::shape, kTransformerClassifierBackwardOp, "grad_logits", {logits}, {grad_logits.shape});
  detail::EncoderBackwardPlan plan = encoder_.layers_.front().plan_backward(kTransformerClassifierBackwardOp, kept, options);
  detail::check_memory(kTransformerClassifierBackwardOp, [&] { gradients_of(grad_logits, detail::counted_buffers(plan)); });
  return plan;
}

void TransformerClassifier::run_backward(const TensorView& grad_logits, const detail::EncoderGradientBuffers& to) {
  detail::Gradients gradients = gradients_of(grad_logits, to);
  share_gradients()->gradients.add(gradients);
  share_gradients()->kept.reset();
}

detail::Gradients TransformerClassifier::gradients_of(const TensorView& grad_logits, const detail::EncoderGradientBuffers& to) const {
  const auto& kept = this->kept<detail::KeptEncoder>(kTransformerClassifierBackwardOp);
  detail::Gradients gradients = share_gradients()->gradients.staging(parameter_shapes());
  detail::Scratch scratch = this->scratch();
  const float* const grad = detail::without_gaps(grad_logits, scratch);
  const std::string prefix = "classifier.";
  if (options_.pooling == Pooling::none) {
    classifier_.backward(grad, kept.output, kept.B * kept.L, to.grad_x, prefix, gradients, scratch);
  } else {
    const MaskView* const padding = kept.call.spec.key_padding_mask ? &*kept.call.spec.key_padding_mask : nullptr;
    const FullyMasked fully_masked = kept.call.spec.fully_masked;
    float* const pooled = scratch.take(size_of(kept.B, kept.E));
    float* const of_pooled = scratch.take(size_of(kept.B, kept.E));
    detail::pool(kept.output, kept.B, kept.L, kept.E, options_.pooling, padding, fully_masked, pooled, kept.E);
    classifier_.backward(grad, pooled, kept.B, of_pooled, prefix, gradients, scratch);
    detail::pool_backward(of_pooled, kept.E, kept.output, kept.B, kept.L, kept.E, options_.pooling, padding, fully_masked, to.grad_x);
  }
  encoder_.backward(kept, "encoder.", gradients, to, scratch);
  return gradients;
}

}  // namespace attn
