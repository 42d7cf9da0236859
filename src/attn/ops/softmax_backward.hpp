#pragma once

#include "attn/ops/softmax.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// Checks shapes, dim and memory; returns dim counted from 0.
std::size_t check_softmax_backward(const TensorView& grad, const TensorView& y, std::int64_t dim);
void softmax_backward(const TensorView& grad, const TensorView& y, std::size_t dim, float* grad_x);
}  // namespace detail

/// Gradient of softmax: y · (grad - Σ grad · y), Σ along the dimension              (torch.autograd of torch.nn.functional.softmax)
/// grad, that of the result, and y, the result itself, of one shape of rank 1 to 8 -> the same shape; dim as softmax takes it.
/// Along it the gradient adds up to 0. Throws OUT_OF_RANGE, SHAPE, MEMORY.
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
