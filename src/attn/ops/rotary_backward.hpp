#pragma once

#include "attn/ops/positions.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Computes the gradient of apply_rotary: the inverse rotations, because the inverse of a rotation is its transpose.
///
/// @param grad     gradient of the result, (..,L,D)
/// @param options  as in the forward
/// @return gradient of x, the shape of grad
/// @throws SHAPE if the rank is below 2 or D is odd
/// @throws CONFIG unless theta is finite and above 0 and offset within ±2⁵³
/// @throws MEMORY if the result exceeds the memory limit
///
/// @code
/// xt::xtensor<float, 2> x{{1, 2}, {3, 4}};
/// std::cout << attn::apply_rotary_backward(attn::apply_rotary(x), {})(1, 0);  // 3
/// @endcode
template <TensorLike G>
auto apply_rotary_backward(const G& grad, const RotaryOptions& options = {}) {
  const detail::Input view(grad, "apply_rotary_backward", "grad");
  auto grad_x = detail::empty<kRankOf<G>>(detail::check_rotary("apply_rotary_backward", "grad", view, options));
  detail::apply_rotary(view, options, -1, grad_x.data());
  return grad_x;
}

}  // namespace attn
