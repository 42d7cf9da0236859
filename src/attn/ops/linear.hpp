#pragma once

#include "attn/tensor/results.hpp"
#include "attn/tensor/view.hpp"

namespace attn {

namespace detail {
/// Checks the inputs and returns the shape of the result. bias may be null.
Shape check_linear(const TensorView& x, const TensorView& weight, const TensorView* bias);
void linear(const TensorView& x, const TensorView& weight, const TensorView* bias, float* y);
}  // namespace detail

/// Computes x Wᵀ + b. Without bias, b is 0.
///
/// @param x       (..,in), any rank from 1
/// @param weight  (out,in)
/// @param bias    (out)
/// @return (..,out), the rank of x
/// @throws SHAPE if widths disagree
/// @throws MEMORY if the result exceeds the memory limit
/// @see torch.nn.functional.linear
///
/// @code
/// xt::xtensor<float, 2> x{{1, 2}}, weight{{1, 0}, {1, 1}, {0, 2}};
/// xt::xtensor<float, 1> bias{0, 0, 10};
/// std::cout << attn::linear(x, weight, bias);  // {{  1.,   3.,  14.}}
/// @endcode
template <TensorLike X, TensorLike W>
auto linear(const X& x, const W& weight) {
  const detail::Input x_view(x, "linear", "x");
  const detail::Input w_view(weight, "linear", "weight");
  auto y = detail::empty<kRankOf<X>>(detail::check_linear(x_view, w_view, nullptr));
  detail::linear(x_view, w_view, nullptr, y.data());
  return y;
}

template <TensorLike X, TensorLike W, TensorLike Bias>
auto linear(const X& x, const W& weight, const Bias& bias) {
  const detail::Input x_view(x, "linear", "x");
  const detail::Input w_view(weight, "linear", "weight");
  const detail::Input b_view(bias, "linear", "bias");
  auto y = detail::empty<kRankOf<X>>(detail::check_linear(x_view, w_view, &b_view));
  detail::linear(x_view, w_view, &b_view, y.data());
  return y;
}

}  // namespace attn
