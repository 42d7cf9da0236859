#pragma once

#include "attn/tensor/results.hpp"
#include "attn/tensor/view.hpp"

namespace attn {

namespace detail {
/// Shape of the result after all checks.
Shape check_linear(const TensorView& x, const TensorView& weight, const TensorView* bias);
void linear(const TensorView& x, const TensorView& weight, const TensorView* bias, float* y);
}  // namespace detail

/// x Wᵀ + b                                                                         (torch.nn.functional.linear)
/// x (..,in), weight (out,in), bias (out) -> (..,out), of x's rank.
/// Throws SHAPE when widths disagree, MEMORY.
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
