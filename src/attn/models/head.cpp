#include "attn/models/head.hpp"

#include "attn/kernels/kernels.hpp"
#include "attn/models/family.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

Head::Head(const ModelConfig& config)
    : classifier_(config.hidden_size, config.outputs(), true),
      norm_(Norm::identity(config.hidden_size)),
      activation_(config.predicts_tokens() ? config.decoder_activation : config.classifier_activation),
      is_tied_(config.is_tied()),
      softcap_(config.logit_softcap) {
  const std::int64_t E = config.hidden_size;
  const HeadNames& names = config.head_names();
  if (names.pooler.empty() && names.dense.empty()) return;
  const std::int64_t width = config.predicts_tokens() ? config.word_width() : E;
  dense_ = {E, width, true};
  norm_ = names.norm.empty() ? Norm::identity(width) : Norm(NormKind::layer_norm, width, true, config.layer_norm_eps);
  classifier_ = {width, config.outputs(), true};
}

void Head::visit_parameters(ParameterVisitor& visitor) {
  if (has_dense()) visitor.part("classifier_dense.", dense_);
  visitor.part("classifier_norm.", norm_);
  if (is_tied_)
    visitor.add("classifier.bias", {.shape = {outputs()}, .kind = ParameterKind::zeros, .vector = &tied_bias_});
  else
    visitor.part("classifier.", classifier_);
}

void Head::forward(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const {
  const FloatEnvironment environment;
  if (!has_dense()) return classify(x, rows, words, logits, scratch);
  const Scratch::Frame frame(scratch);
  const auto size = static_cast<std::size_t>(width());
  float* const dense = scratch.take(static_cast<std::size_t>(rows), size);
  const kernels::KernelTable& kernel = kernels::best(dense_.is_quantized());
  const auto finish = [&](std::size_t row, unsigned) noexcept {
    float* const y = dense + row * size;
    kernel.activation_row(activation_, y, y, size);
    norm_.forward_row(y, y);
  };
  const parallel::TaskRef finish_row = finish;
  dense_.forward(x, rows, dense, scratch, &finish_row);
  classify(dense, rows, words, logits, scratch);
}

void Head::classify(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const {
  if (is_tied_)
    words.multiply({x, static_cast<std::size_t>(rows), static_cast<std::size_t>(width())}, tied_bias_.data(), logits, scratch);
  else
    classifier_.forward(x, rows, logits, scratch);
  const kernels::KernelTable& kernel = kernels::best(is_tied_ ? words.is_quantized() : classifier_.is_quantized());
  const auto size = static_cast<std::size_t>(outputs());
  for (std::int64_t row = 0; row < rows && softcap_ > 0 && !counts(); ++row, logits += size) {
    kernel.scale_row(logits, 1 / softcap_, logits, size);
    kernel.activation_row(Activation::tanh, logits, logits, size);
    kernel.scale_row(logits, softcap_, logits, size);
  }
}

}  // namespace attn::detail
