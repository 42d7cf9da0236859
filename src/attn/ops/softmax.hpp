#pragma once

#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
/// Checks the rank, dim and memory; returns dim counted from 0.
std::size_t check_softmax(const TensorView& x, std::int64_t dim);
void softmax(const TensorView& x, std::size_t dim, float* y);
}  // namespace detail

/// Computes softmax along one dimension: exp(x - max x) / Σ exp(x - max x).
///
/// @param x    rank 1 to 8
/// @param dim  dimension to normalise, -rank to rank - 1; -1 is the last
/// @return the shape of x. A slice that is all -infinity, or holds NaN or +infinity, gives NaN
/// @throws OUT_OF_RANGE if x has no dimension dim
/// @throws SHAPE if the rank is outside 1 to 8
/// @throws MEMORY if the result exceeds the memory limit
/// @see torch.nn.functional.softmax
///
/// @code
/// xt::xtensor<float, 1> x{0, 0, 0, 0};
/// std::cout << attn::softmax(x);  // { 0.25, 0.25, 0.25, 0.25}
/// @endcode
template <TensorLike X>
auto softmax(const X& x, std::int64_t dim = -1) {
  const detail::Input view(x, "softmax", "x");
  const std::size_t axis = detail::check_softmax(view, dim);
  auto y = detail::empty<kRankOf<X>>(view.shape);
  detail::softmax(view, axis, y.data());
  return y;
}

}  // namespace attn
