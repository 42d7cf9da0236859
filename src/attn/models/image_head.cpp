#include "attn/models/image_head.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/pooling.hpp"

namespace attn::detail {

ImageHead::ImageHead(const ModelConfig& config) : config_(config.image), E_(config.hidden_size) {
  if (config.has_head()) classifier_ = {config_.joins_mean ? 2 * E_ : E_, config.outputs(), true};
  if (config.has_head() && config_.two_heads) teacher_ = {E_, config.outputs(), true};
  if (config_.pooler_size > 0) pooler_ = {E_, config_.pooler_size, true};
}

void ImageHead::visit_parameters(ParameterVisitor& visitor) {
  if (classifier_.out_features() > 0) visitor.part("classifier.", classifier_);
  if (teacher_.out_features() > 0) visitor.part("distillation_classifier.", teacher_);
  if (has_pooler()) visitor.part("pooler.", pooler_);
}

void ImageHead::mean_of_patches(const float* hidden, std::int64_t B, std::int64_t L, float* to, std::int64_t stride) const {
  attn::detail::pool(hidden, B, L, E_, Pooling::mean, nullptr, FullyMasked::zero, to, stride, config_.first_patch());
}

void ImageHead::token(const float* hidden, std::int64_t B, std::int64_t L, std::int64_t place, float* to, std::int64_t stride) const {
  for (std::int64_t b = 0; b < B && !counts(); ++b) std::copy_n(hidden + (b * L + place) * E_, E_, to + b * stride);
}

void ImageHead::classify(const float* hidden, std::int64_t B, std::int64_t L, float* logits, Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  const std::int64_t width = classifier_.in_features();
  float* const x = scratch.take(size_of(B, width));
  token(hidden, B, L, 0, x, width);
  if (config_.joins_mean) mean_of_patches(hidden, B, L, x + E_, width);
  classifier_.forward(x, B, logits, scratch);
  if (!config_.two_heads) return;
  const std::size_t size = size_of(B, classifier_.out_features());
  float* const other = scratch.take(size);
  token(hidden, B, L, 1, x, width);
  teacher_.forward(x, B, other, scratch);
  if (counts()) return;
  const kernels::KernelTable& kernel = kernels::best(teacher_.is_quantized());
  kernel.add_row(logits, other, logits, size);
  kernel.scale_row(logits, 0.5F, logits, size);
}

void ImageHead::pool(const float* hidden, std::int64_t B, std::int64_t L, ImagePooling pooling, float* y, Scratch& scratch) const {
  if (pooling == ImagePooling::mean) return mean_of_patches(hidden, B, L, y, E_);
  if (pooling == ImagePooling::cls) return token(hidden, B, L, 0, y, E_);
  const Scratch::Frame frame(scratch);
  float* const first = scratch.take(size_of(B, E_));
  token(hidden, B, L, 0, first, E_);
  pooler_.forward(first, B, y, scratch);
  if (!counts()) kernels::best(pooler_.is_quantized()).activation_row(config_.pooler_activation, y, y, size_of(B, pooler_.out_features()));
}

}  // namespace attn::detail
