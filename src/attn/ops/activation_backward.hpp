#pragma once

#include "attn/ops/activation.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// Throws SHAPE if the shapes differ and MEMORY if the result exceeds the memory limit.
void check_activation_backward(const TensorView& grad, const TensorView& x);
void activation_backward(const TensorView& grad, const TensorView& x, Activation name, float* grad_x);
}  // namespace detail

/// Computes the gradient of activation, grad · f'(x), for each element; see Activation for the formulas of f.
///
/// @param grad  gradient of the result, the shape of x
/// @param x     as in the forward
/// @param name  as in the forward
/// @return gradient of x. relu' is 0 at 0, as in torch; at ±infinity f' is its limit, if there is one
/// @throws SHAPE if the shapes differ
/// @throws MEMORY if the result exceeds the memory limit
/// @see torch.autograd of torch.nn.functional.relu, gelu, silu, …
///
/// @code
/// xt::xtensor<float, 1> x{-1, 2}, grad{3, 3};
/// std::cout << attn::activation_backward(grad, x, attn::Activation::relu);  // { 0.,  3.}
/// @endcode
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
