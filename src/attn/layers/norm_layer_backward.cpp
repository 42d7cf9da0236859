#include "attn/ops/norm_backward.hpp"

#include <algorithm>

#include "attn/layers/gradients.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/layers/rows_with_gradient.hpp"

namespace attn::detail {

void Norm::backward(const float* grad, const float* x, std::int64_t rows, const NormGradientBuffers& to, Scratch& scratch) const {
  const auto width = static_cast<std::size_t>(width_), count = static_cast<std::size_t>(rows);
  if (is_identity_) {
    if (grad != to.grad_x) copy_values(grad, count * width, to.grad_x);
    return;
  }
  const Scratch::Frame frame(scratch);
  const TensorView grads{grad, {rows, width_}}, inputs{rows_with_gradient(grad, width, x, width, count, scratch), {rows, width_}};
  const TensorView weight{weight_.data(), shape()};
  if (kind_ == NormKind::rms_norm)
    rms_norm_backward(grads, inputs, &weight, eps_, to);
  else
    layer_norm_backward(grads, inputs, &weight, eps_, to);
}

void Norm::backward(const float* grad, const float* x, std::int64_t rows, float* grad_x, const std::string& prefix, Gradients& gradients,
                    Scratch& scratch) const {
  if (is_identity_) return backward(grad, x, rows, {.grad_x = grad_x}, scratch);
  backward(grad, x, rows, {grad_x, gradients.fill(prefix + "weight"), has_bias_ ? gradients.fill(prefix + "bias") : nullptr}, scratch);
}

}  // namespace attn::detail
