#include "attn/layers/transformer_classifier.hpp"

#include "attn/ops/pooling.hpp"

namespace attn {
namespace {

constexpr std::string_view kTransformerClassifierOp = "TransformerClassifier";

}  // namespace

TransformerClassifier::TransformerClassifier(detail::Uninitialized, const TransformerClassifierOptions& options)
    : options_(options),
      encoder_(detail::Uninitialized{}, kTransformerClassifierOp, options.encoder),
      classifier_(options.encoder.layer.d_model, detail::check_positive(kTransformerClassifierOp, "num_classes", options.num_classes), true) {}

TransformerClassifier::TransformerClassifier(const TransformerClassifierOptions& options) : TransformerClassifier(detail::Uninitialized{}, options) {
  create(kTransformerClassifierOp);
}

void TransformerClassifier::visit_parameters(detail::ParameterVisitor& visitor) {
  visitor.part("encoder.", encoder_);
  visitor.part("classifier.", classifier_);
}

detail::EncoderPlan TransformerClassifier::plan(const TensorView& x, const EncoderForwardOptions& options) const {
  detail::EncoderPlan plan = encoder_.plan(kTransformerClassifierOp, x, options, {});
  if (plan.for_backward) detail::check_float32(kTransformerClassifierOp, "for_backward", is_quantized());
  detail::check_memory(kTransformerClassifierOp, [&] { run(plan, x, detail::counted_buffers(plan), detail::counted(logits_shape(plan), "logits")); });
  return plan;
}

Shape TransformerClassifier::logits_shape(const detail::EncoderPlan& plan) const {
  Shape shape = plan.output;
  shape[shape.rank() - 1] = options_.num_classes;
  if (options_.pooling == Pooling::none) return shape;
  return shape.rank() == 3 ? Shape{plan.B, options_.num_classes} : Shape{options_.num_classes};
}

void TransformerClassifier::run(const detail::EncoderPlan& plan, const TensorView& x, const detail::EncoderBuffers& buffers, float* logits) const {
  const detail::ForwardRandom random = next_random();
  std::shared_ptr<detail::KeptEncoder> kept;
  if (keeps(plan.for_backward) && !is_quantized()) {
    kept = encoder_.run_and_keep(plan, x, random, {}, buffers);
    if (!detail::counts()) share_gradients()->kept = kept;
  } else {
    encoder_.run(plan, x, random, {}, buffers);
  }
  detail::Scratch scratch = this->scratch();
  if (options_.pooling == Pooling::none) return classifier_.forward(buffers.output, plan.B * plan.L, logits, scratch);
  float* const pooled = scratch.take(static_cast<std::uint64_t>(plan.B * plan.E));
  detail::pool(buffers.output, plan.B, plan.L, plan.E, options_.pooling, plan.padding(), plan.attention.spec.fully_masked, pooled, plan.E);
  classifier_.forward(pooled, plan.B, logits, scratch);
}

}  // namespace attn
