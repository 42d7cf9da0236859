#include "attn/layers/norm_layer.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/norm.hpp"

namespace attn::detail {

void Norm::forward(const float* x, std::int64_t rows, float* y) const {
  if (is_identity_) {
    if (x != y) copy_values(x, static_cast<std::size_t>(rows * width_), y);
    return;
  }
  const TensorView view{x, {rows, shape()[0]}}, weight{weight_.data(), shape()}, bias{bias_.data(), shape()};
  if (kind_ == NormKind::rms_norm)
    rms_norm(view, &weight, eps_, y, reproducible_);
  else
    layer_norm(view, &weight, has_bias_ ? &bias : nullptr, eps_, y, reproducible_);
}

void Norm::forward_row(const float* x, float* y) const {
  if (is_identity_) return static_cast<void>(x != y ? std::copy_n(x, width_, y) : y);
  const kernels::KernelTable& kernel = kernels::best(reproducible_);
  if (is_scale_)
    kernel.multiply_row(x, weight_.data(), y, weight_.size());
  else if (kind_ == NormKind::rms_norm)
    kernel.rms_norm_row(x, weight_.data(), eps_, y, weight_.size());
  else
    kernel.layer_norm_row(x, weight_.data(), has_bias_ ? bias_.data() : nullptr, eps_, y, weight_.size());
}

void Norm::visit_parameters(ParameterVisitor& visitor) {
  if (is_identity_) return;
  visitor.add("weight", {.shape = shape(), .kind = ParameterKind::ones, .vector = &weight_, .reproducible = &reproducible_, .offset = offset_});
  if (has_bias_) visitor.add("bias", {.shape = shape(), .kind = ParameterKind::zeros, .vector = &bias_});
}

}  // namespace attn::detail
