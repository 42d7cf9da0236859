#pragma once

#include "attn/ops/linear.hpp"
#include "attn/tensor/results.hpp"
#include "attn/tensor/view.hpp"

namespace attn {

namespace detail {

/// Output buffers for gradients; null if not requested.
struct LinearGradientBuffers {
  float* grad_x = nullptr;       ///< (..,in)
  float* grad_weight = nullptr;  ///< (out,in)
  float* grad_bias = nullptr;    ///< (out)
};

/// Throws SHAPE if widths disagree or grad does not fit, MEMORY if the results exceed the memory limit.
void check_linear_backward(const TensorView& grad, const TensorView& x, const TensorView& weight);
void linear_backward(const TensorView& grad, const TensorView& x, const TensorView& weight, const LinearGradientBuffers& to);

}  // namespace detail

/// Result of linear_backward(). N: rank of x.
template <std::size_t N>
struct LinearGradients {
  TensorOf<N> grad_x;                   ///< (..,in)
  TensorOf<kBeside<N, 2>> grad_weight;  ///< (out,in)
  TensorOf<kBeside<N, 1>> grad_bias;    ///< (out)
};

/// Computes the gradients of linear: grad_x = grad W, grad_weight = gradᵀ x, grad_bias = Σ grad. The order of the
/// sums depends only on the number of rows, so any number of threads gives the same bits.
///
/// @param grad    gradient of the result, (..,out)
/// @param x       (..,in), as in the forward
/// @param weight  (out,in), as in the forward
/// @return {grad_x, grad_weight, grad_bias}, each with the shape of its input; grad_bias (out)
/// @throws SHAPE if widths disagree or grad does not have the shape of the result
/// @throws MEMORY if the results exceed the memory limit
/// @see torch.autograd of torch.nn.functional.linear
///
/// @code
/// xt::xtensor<float, 2> x{{1, 2}}, weight{{3, 4}}, grad{{1}};
/// auto [grad_x, grad_weight, grad_bias] = attn::linear_backward(grad, x, weight);
/// std::cout << grad_x << grad_weight << grad_bias;  // {{ 3.,  4.}}{{ 1.,  2.}}{ 1.}
/// @endcode
template <TensorLike G, TensorLike X, TensorLike W>
auto linear_backward(const G& grad, const X& x, const W& weight) {
  constexpr std::size_t N = kRankOf<X>;
  const char* op = "linear_backward";
  const detail::Input g(grad, op, "grad");
  const detail::Input x_view(x, op, "x");
  const detail::Input w(weight, op, "weight");
  detail::check_linear_backward(g, x_view, w);
  LinearGradients<N> result{detail::empty<N>(x_view.shape), detail::empty<kBeside<N, 2>>(w.shape), detail::empty<kBeside<N, 1>>({w.shape[0]})};
  detail::linear_backward(g, x_view, w, {result.grad_x.data(), result.grad_weight.data(), result.grad_bias.data()});
  return result;
}

}  // namespace attn
