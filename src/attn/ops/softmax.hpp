#pragma once

#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// Checks the rank, dim and memory; returns dim counted from 0.
std::size_t check_softmax(const TensorView& x, std::int64_t dim);
void softmax(const TensorView& x, std::size_t dim, float* y);
}  // namespace detail

/// exp(x - max x) / Σ exp(x - max x) along one dimension                           (torch.nn.functional.softmax)
/// x of rank 1 to 8 -> the same shape; dim -rank..rank-1, -1 is the last.
/// A slice that is all -infinity, or holds NaN or +infinity, gives NaN. Throws OUT_OF_RANGE, SHAPE, MEMORY.
template <TensorLike X>
auto softmax(const X& x, std::int64_t dim = -1) {
  const detail::Input view(x, "softmax", "x");
  const std::size_t axis = detail::check_softmax(view, dim);
  auto y = detail::empty<kRankOf<X>>(view.shape);
  detail::softmax(view, axis, y.data());
  return y;
}

}  // namespace attn
