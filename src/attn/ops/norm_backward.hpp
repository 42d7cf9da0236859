#pragma once

#include <optional>

#include "attn/ops/norm.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {

/// Output buffers for gradients; null if not requested.
struct NormGradientBuffers {
  float* grad_x = nullptr;
  float *grad_weight = nullptr, *grad_bias = nullptr;  ///< (width)
};

/// The check functions throw SHAPE, CONFIG, MEMORY as documented below. weight may be null.
void check_layer_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps);
void layer_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps, const NormGradientBuffers& to);
void check_rms_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps);
void rms_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps, const NormGradientBuffers& to);

}  // namespace detail

/// Result of layer_norm_backward() and rms_norm_backward(). N: rank of x.
template <std::size_t N>
struct NormGradients {
  TensorOf<N> grad_x;
  std::optional<TensorOf<kBeside<N, 1>>> grad_weight = std::nullopt;  ///< (width), if a weight was given
  std::optional<TensorOf<kBeside<N, 1>>> grad_bias = std::nullopt;    ///< (width), for layer_norm if a weight was given
};

/// Computes the gradients of layer_norm. With n = (x - mean) · f, f = 1 / √(variance + eps), and g = grad · weight:
/// grad_x = f · (g - mean(g) - n · mean(g n)), grad_weight = Σ grad · n, grad_bias = Σ grad. None depends on the
/// bias. Sums over rows form a fixed tree, so any number of threads gives the same bits.
///
/// @param grad    gradient of the result, the shape of x
/// @param x       (..,width), as in the forward
/// @param weight  (width), as in the forward; default 1
/// @param eps     as in the forward, default 1e-5
/// @return {grad_x, grad_weight, grad_bias}; the last two only if a weight is given
/// @throws SHAPE if shapes disagree or x has rank 0
/// @throws CONFIG unless eps is finite and above 0
/// @throws MEMORY if the results exceed the memory limit
/// @see torch.autograd of torch.nn.functional.layer_norm
///
/// @code
/// xt::xtensor<float, 2> x{{0, 8}}, grad{{1, 1}};
/// xt::xtensor<float, 1> weight{1, 1};
/// auto gradients = attn::layer_norm_backward(grad, x, weight);
/// std::cout << *gradients.grad_weight << *gradients.grad_bias;  // {-1.,  1.}{ 1.,  1.}
/// @endcode
template <TensorLike G, TensorLike X>
auto layer_norm_backward(const G& grad, const X& x, float eps = 1e-5F) {
  constexpr std::size_t N = kRankOf<X>;
  const detail::Input g(grad, "layer_norm_backward", "grad");
  const detail::Input view(x, "layer_norm_backward", "x");
  detail::check_layer_norm_backward(g, view, nullptr, eps);
  NormGradients<N> result{detail::empty<N>(view.shape)};
  detail::layer_norm_backward(g, view, nullptr, eps, {result.grad_x.data(), nullptr, nullptr});
  return result;
}

template <TensorLike G, TensorLike X, TensorLike W>
auto layer_norm_backward(const G& grad, const X& x, const W& weight, float eps = 1e-5F) {
  constexpr std::size_t N = kRankOf<X>, One = kBeside<N, 1>;
  const detail::Input g(grad, "layer_norm_backward", "grad");
  const detail::Input view(x, "layer_norm_backward", "x");
  const detail::Input w(weight, "layer_norm_backward", "weight");
  detail::check_layer_norm_backward(g, view, &w, eps);
  NormGradients<N> result{detail::empty<N>(view.shape), detail::empty<One>(w.shape), detail::empty<One>(w.shape)};
  detail::layer_norm_backward(g, view, &w, eps, {result.grad_x.data(), result.grad_weight->data(), result.grad_bias->data()});
  return result;
}

/// Computes the gradients of rms_norm. With n = x · f, f = 1 / √(mean of x² + eps), and g = grad · weight: grad_x = f
/// · (g - n · mean(g n)), grad_weight = Σ grad · n.
///
/// @param grad    gradient of the result, the shape of x
/// @param x       (..,width), as in the forward
/// @param weight  (width), as in the forward; default 1
/// @param eps     as in the forward, default 2⁻²³
/// @return {grad_x, grad_weight}; grad_weight only if a weight is given
/// @throws SHAPE if shapes disagree or x has rank 0
/// @throws CONFIG unless eps is finite and above 0
/// @throws MEMORY if the results exceed the memory limit
/// @see torch.autograd of torch.nn.functional.rms_norm
///
/// @code
/// xt::xtensor<float, 2> x{{1, 7}}, grad{{5, 5}};
/// xt::xtensor<float, 1> weight{1, 1};
/// std::cout << *attn::rms_norm_backward(grad, x, weight).grad_weight;  // { 1.,  7.}
/// @endcode
template <TensorLike G, TensorLike X>
auto rms_norm_backward(const G& grad, const X& x, float eps = 0x1p-23F) {
  constexpr std::size_t N = kRankOf<X>;
  const detail::Input g(grad, "rms_norm_backward", "grad");
  const detail::Input view(x, "rms_norm_backward", "x");
  detail::check_rms_norm_backward(g, view, nullptr, eps);
  NormGradients<N> result{detail::empty<N>(view.shape)};
  detail::rms_norm_backward(g, view, nullptr, eps, {result.grad_x.data(), nullptr, nullptr});
  return result;
}

template <TensorLike G, TensorLike X, TensorLike W>
auto rms_norm_backward(const G& grad, const X& x, const W& weight, float eps = 0x1p-23F) {
  constexpr std::size_t N = kRankOf<X>;
  const detail::Input g(grad, "rms_norm_backward", "grad");
  const detail::Input view(x, "rms_norm_backward", "x");
  const detail::Input w(weight, "rms_norm_backward", "weight");
  detail::check_rms_norm_backward(g, view, &w, eps);
  NormGradients<N> result{detail::empty<N>(view.shape), detail::empty<kBeside<N, 1>>(w.shape)};
  detail::rms_norm_backward(g, view, &w, eps, {result.grad_x.data(), result.grad_weight->data(), nullptr});
  return result;
}

}  // namespace attn
