#pragma once

// Only this file includes xtensor, whose headers moved in 0.26.
#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>

#include "attn/tensor/large_pages.hpp"
#include "attn/tensor/state.hpp"
#include "attn/tensor/view.hpp"

// Everything here is inline, in the caller's configuration of xtensor. The compiled library does not use xtensor.
namespace attn {

template <std::size_t N, class T>
struct TensorType {
  using type = xt::xtensor<T, N>;
};
/// Stores shapes up to the maximum rank inline. xt::xarray allocates them above rank 4, even in a move, which must not
/// fail.
template <class T>
struct TensorType<kAnyRank, T> {
  using type = xt::xarray_container<xt::uvector<T>, xt::layout_type::row_major, xt::svector<std::size_t, Shape::kMaxRank>>;
};

/// Row-major float32 tensor of a fixed rank.
template <std::size_t N>
using Tensor = xt::xtensor<float, N>;

/// Row-major float32 tensor whose rank is known only at run time: entries of a state dictionary or of a trace.
using AnyTensor = TensorOf<kAnyRank>;

/// Parameters by PyTorch names, e.g. "out_proj.weight".
using StateDict = std::map<std::string, AnyTensor>;
template <class>
struct StateDictType {
  using type = StateDict;
};

namespace detail {

template <std::size_t N, class T>
TensorOf<N, T> empty(const Shape& shape) {
  const auto of = [&](auto dims) {
    for (std::size_t axis = 0; axis < dims.size(); ++axis) dims[axis] = static_cast<std::size_t>(shape[axis]);
    TensorOf<N, T> tensor(dims);
    prefer_large_pages(tensor.data(), tensor.size() * sizeof(T));
    return tensor;
  };
  if constexpr (N == kAnyRank)
    return of(typename TensorOf<N, T>::shape_type(shape.rank()));
  else
    return of(std::array<std::size_t, N>{});
}

inline AnyTensor empty_any(const Shape& shape) { return empty<kAnyRank>(shape); }

template <class E>
void copy_elements(const E& expression, float* to) {
  std::copy(expression.template begin<xt::layout_type::row_major>(), expression.template end<xt::layout_type::row_major>(), to);
}

}  // namespace detail
}  // namespace attn
