#pragma once

#include "attn/ops/activation.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// Throws where shapes disagree or memory is not enough.
void check_activation_backward(const TensorView& grad, const TensorView& x);
void activation_backward(const TensorView& grad, const TensorView& x, Activation name, float* grad_x);
}  // namespace detail

/// Gradient of activation: grad · f'(x), element by element; the formulas of f are at Activation.
/// grad, that of the result, and x, of one shape of any rank -> the same shape. relu' is 0 at 0, as in torch; where the derivative has a
/// limit at ±infinity it is that.
/// Throws SHAPE, MEMORY.                                       (torch.autograd of torch.nn.functional.relu, gelu, silu, ...)
template <TensorLike G, TensorLike X>
auto activation_backward(const G& grad, const X& x, Activation name) {
  const detail::Input g(grad, "activation_backward", "grad");
  const detail::Input view(x, "activation_backward", "x");
  detail::check_activation_backward(g, view);
  auto grad_x = detail::empty<kRankOf<X>>(view.shape);
  detail::activation_backward(g, view, name, grad_x.data());
  return grad_x;
}

}  // namespace attn
