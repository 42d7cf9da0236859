#pragma once

#include <array>
#include <string_view>

#include "attn/kernels/activation_name.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

using kernels::Activation;

inline constexpr std::array<std::string_view, 9> kActivationNames{"relu",    "gelu",     "gelu_tanh", "silu",      "tanh",
                                                                  "sigmoid", "identity", "mish",      "quick_gelu"};
static_assert(kActivationNames.size() == static_cast<std::size_t>(Activation::quick_gelu) + 1);

namespace detail {
/// Shape of the result after all checks.
Shape check_activation(const TensorView& x);
void activation(const TensorView& x, Activation name, float* y);
}  // namespace detail

/// f(x), element by element; the formulas are at Activation.
/// x of any rank -> the same shape. At ±infinity and NaN as in torch: gelu and silu of -infinity are NaN.
/// Throws MEMORY.                                                                     (torch.nn.functional.relu, gelu, silu, ...)
template <TensorLike X>
auto activation(const X& x, Activation name) {
  const detail::Input view(x, "activation", "x");
  auto y = detail::empty<kRankOf<X>>(detail::check_activation(view));
  detail::activation(view, name, y.data());
  return y;
}

}  // namespace attn
