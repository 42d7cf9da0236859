#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "support/call.hpp"

namespace attn::test {

template <std::size_t N>
auto view(const Array& x) {
  std::array<std::size_t, N> dims{};
  for (std::size_t axis = 0; axis < N; ++axis) dims[axis] = static_cast<std::size_t>(x.dims[axis]);
  return xt::adapt(x.data.data(), x.data.size(), xt::no_ownership(), dims);
}

template <class T>
Array array_of(const T& tensor) {
  return {to_shape(tensor.shape()), std::vector<float>(tensor.data(), tensor.data() + tensor.size())};
}

template <class R>
Result result_of(const R& r) {
  Result result{array_of(r.output), {}, {}};
  if (r.weights) result.weights = array_of(*r.weights);
  if (r.trace)
    for (const auto& [name, tensor] : *r.trace) result.trace.emplace(name, array_of(tensor));
  return result;
}

inline AnyTensor any_of(const Array& x) {
  AnyTensor tensor = detail::empty_any(x.dims);
  std::copy(x.data.begin(), x.data.end(), tensor.data());
  return tensor;
}

template <std::size_t First, std::size_t Last, class F>
auto with_rank(std::size_t rank, F f) {
  if constexpr (First < Last)
    if (rank != First) return with_rank<First + 1, Last>(rank, f);
  if (rank != First) throw std::logic_error("the test has a tensor of a rank that it cannot have");
  return f.template operator()<First>();
}

}  // namespace attn::test
