#pragma once

#include <algorithm>

#include "attn/tensor/tensor.hpp"
#include "support/array.hpp"

namespace attn::test {

template <std::size_t N>
Tensor<N> tensor_of(const Array& x) {
  Tensor<N> tensor = detail::empty<N>(x.dims);
  std::copy(x.data.begin(), x.data.end(), tensor.data());
  return tensor;
}

template <std::size_t N>
Array array_of(const Tensor<N>& x) {
  return {to_shape(x.shape()), std::vector<float>(x.data(), x.data() + x.size())};
}

}  // namespace attn::test
