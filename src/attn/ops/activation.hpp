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
/// Checks the input and returns the shape of the result.
Shape check_activation(const TensorView& x);
void activation(const TensorView& x, Activation name, float* y);
}  // namespace detail

/// Computes f(x) for each element; see Activation for the formulas.
///
/// @param x     any rank
/// @param name  the function, for example Activation::gelu
/// @return the shape of x; at ±infinity and NaN as torch: gelu and silu of -infinity are NaN
/// @throws MEMORY if the result exceeds the memory limit
/// @see torch.nn.functional.relu, gelu, silu, …
///
/// @code
/// xt::xtensor<float, 1> x{-1, 0, 2};
/// std::cout << attn::activation(x, attn::Activation::relu);  // { 0.,  0.,  2.}
/// @endcode
template <TensorLike X>
auto activation(const X& x, Activation name) {
  const detail::Input view(x, "activation", "x");
  auto y = detail::empty<kRankOf<X>>(detail::check_activation(view));
  detail::activation(view, name, y.data());
  return y;
}

}  // namespace attn
