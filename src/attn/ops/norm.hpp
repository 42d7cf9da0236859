#pragma once

#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// The check functions return the shape of the result. weight and bias may be null; rms_norm has no bias.
Shape check_layer_norm(const TensorView& x, const TensorView* weight, const TensorView* bias, float eps);
void layer_norm(const TensorView& x, const TensorView* weight, const TensorView* bias, float eps, float* y, bool reproducible = false);
Shape check_rms_norm(const TensorView& x, const TensorView* weight, float eps);
void rms_norm(const TensorView& x, const TensorView* weight, float eps, float* y, bool reproducible = false);
}  // namespace detail

/// Computes (x - mean) / √(variance + eps) · weight + bias over the last dimension, with the biased variance.
///
/// @param x       (..,width), rank 1 or more
/// @param weight  (width), default 1
/// @param bias    (width), default 0
/// @param eps     finite and above 0, default 1e-5
/// @return the shape of x
/// @throws SHAPE if widths disagree or x has rank 0
/// @throws CONFIG unless eps is finite and above 0
/// @throws MEMORY if the result exceeds the memory limit
/// @see Ba et al. 2016; torch.nn.functional.layer_norm
///
/// @code
/// xt::xtensor<float, 2> x{{0, 8}};
/// std::cout << attn::layer_norm(x);  // {{-1.,  1.}}
/// @endcode
template <TensorLike X>
auto layer_norm(const X& x, float eps = 1e-5F) {
  const detail::Input view(x, "layer_norm", "x");
  auto y = detail::empty<kRankOf<X>>(detail::check_layer_norm(view, nullptr, nullptr, eps));
  detail::layer_norm(view, nullptr, nullptr, eps, y.data());
  return y;
}

template <TensorLike X, TensorLike W>
auto layer_norm(const X& x, const W& weight, float eps = 1e-5F) {
  const detail::Input view(x, "layer_norm", "x");
  const detail::Input w_view(weight, "layer_norm", "weight");
  auto y = detail::empty<kRankOf<X>>(detail::check_layer_norm(view, &w_view, nullptr, eps));
  detail::layer_norm(view, &w_view, nullptr, eps, y.data());
  return y;
}

template <TensorLike X, TensorLike W, TensorLike Bias>
auto layer_norm(const X& x, const W& weight, const Bias& bias, float eps = 1e-5F) {
  const detail::Input view(x, "layer_norm", "x");
  const detail::Input w_view(weight, "layer_norm", "weight");
  const detail::Input b_view(bias, "layer_norm", "bias");
  auto y = detail::empty<kRankOf<X>>(detail::check_layer_norm(view, &w_view, &b_view, eps));
  detail::layer_norm(view, &w_view, &b_view, eps, y.data());
  return y;
}

/// Computes x / √(mean of x² + eps) · weight over the last dimension.
///
/// @param x       (..,width), rank 1 or more
/// @param weight  (width), default 1
/// @param eps     finite and above 0, default torch's 2⁻²³
/// @return the shape of x
/// @throws SHAPE if widths disagree or x has rank 0
/// @throws CONFIG unless eps is finite and above 0
/// @throws MEMORY if the result exceeds the memory limit
/// @see Zhang & Sennrich 2019; torch.nn.functional.rms_norm
///
/// @code
/// xt::xtensor<float, 2> x{{1, 7}};  // root of the mean square: 5
/// std::cout << attn::rms_norm(x);   // {{ 0.2,  1.4}}
/// @endcode
template <TensorLike X>
auto rms_norm(const X& x, float eps = 0x1p-23F) {
  const detail::Input view(x, "rms_norm", "x");
  auto y = detail::empty<kRankOf<X>>(detail::check_rms_norm(view, nullptr, eps));
  detail::rms_norm(view, nullptr, eps, y.data());
  return y;
}

template <TensorLike X, TensorLike W>
auto rms_norm(const X& x, const W& weight, float eps = 0x1p-23F) {
  const detail::Input view(x, "rms_norm", "x");
  const detail::Input w_view(weight, "rms_norm", "weight");
  auto y = detail::empty<kRankOf<X>>(detail::check_rms_norm(view, &w_view, eps));
  detail::rms_norm(view, &w_view, eps, y.data());
  return y;
}

}  // namespace attn
