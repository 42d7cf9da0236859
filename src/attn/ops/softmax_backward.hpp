#pragma once

#include "attn/ops/softmax.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// Checks shapes, dim and memory; returns dim counted from 0.
std::size_t check_softmax_backward(const TensorView& grad, const TensorView& y, std::int64_t dim);
void softmax_backward(const TensorView& grad, const TensorView& y, std::size_t dim, float* grad_x);
}  // namespace detail

/// Computes the gradient of softmax: y · (grad - Σ grad · y), Σ along the dimension.
///
/// @param grad  gradient of the result, the shape of y
/// @param y     result of softmax, rank 1 to 8
/// @param dim   the forward's dimension, -rank to rank - 1; -1 is the last
/// @return gradient of x, the shape of y; it sums to 0 along the dimension
/// @throws OUT_OF_RANGE if y has no dimension dim
/// @throws SHAPE if the shapes differ or the rank is outside 1 to 8
/// @throws MEMORY if the result exceeds the memory limit
/// @see torch.autograd of torch.nn.functional.softmax
///
/// @code
/// xt::xtensor<float, 1> y{0.5F, 0.5F}, grad{1, 0};
/// std::cout << attn::softmax_backward(grad, y);  // { 0.25, -0.25}
/// @endcode
template <TensorLike G, TensorLike Y>
auto softmax_backward(const G& grad, const Y& y, std::int64_t dim = -1) {
  const detail::Input g(grad, "softmax_backward", "grad");
  const detail::Input view(y, "softmax_backward", "y");
  const std::size_t axis = detail::check_softmax_backward(g, view, dim);
  auto grad_x = detail::empty<kRankOf<Y>>(view.shape);
  detail::softmax_backward(g, view, axis, grad_x.data());
  return grad_x;
}

}  // namespace attn
