#pragma once

#include "attn/ops/positions.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Gradient of apply_rotary: the same turns the other way, since the inverse of a rotation is its transpose.
/// grad (..,L,D), that of the result -> the same shape; options are the forward's.
/// Throws SHAPE (rank below 2, D odd), CONFIG (theta not finite or not above 0, offset beyond ±2⁵³), MEMORY.
template <TensorLike G>
auto apply_rotary_backward(const G& grad, const RotaryOptions& options = {}) {
  const detail::Input view(grad, "apply_rotary_backward", "grad");
  auto grad_x = detail::empty<kRankOf<G>>(detail::check_rotary("apply_rotary_backward", "grad", view, options));
  detail::apply_rotary(view, options, -1, grad_x.data());
  return grad_x;
}

}  // namespace attn
