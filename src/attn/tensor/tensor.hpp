#pragma once

// The one place that includes xtensor: 0.26 moved its headers.
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
#include <concepts>
#include <cstddef>
#include <map>
#include <string>
#include <type_traits>

#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {

/// Row-major float32 tensor of a fixed rank.
template <std::size_t N>
using Tensor = xt::xtensor<float, N>;

/// Row-major float32 tensor whose rank is known at run time only: entries of a state dictionary or of a trace. Shapes lie inside up
/// to the highest rank: those of an xt::xarray are allocated above rank 4, by a move too, which may not fail.
using AnyTensor = xt::xarray_container<xt::uvector<float>, xt::layout_type::row_major, xt::svector<std::size_t, Shape::kMaxRank>>;

/// Parameters by torch's names, e.g. "out_proj.weight".
using StateDict = std::map<std::string, AnyTensor>;

/// What lies in memory: xt::xtensor, an xt::adapt of memory of one's own, a view of either or xt::xarray.
template <class E>
concept HasData = requires(const E& e) {
  e.data();
  { e.data_offset() } -> std::convertible_to<std::size_t>;
  e.shape();
  e.strides();
};

/// A float tensor of the user's that lies in memory.
template <class E>
concept TensorLike = HasData<E> && std::same_as<typename E::value_type, float> && requires(const E& e) {
  { *e.data() } -> std::convertible_to<float>;
  { e.is_contiguous() } -> std::convertible_to<bool>;
};

template <class E>
concept HasFixedRank = requires { std::tuple_size<std::remove_cvref_t<decltype(std::declval<const E&>().shape())>>::value; };

/// Of an input of an op or layer, whose result has a rank that follows from it.
template <class E>
inline constexpr std::size_t kRankOf = [] {
  static_assert(HasFixedRank<E>, "the rank of an input must be known to the compiler: assign an xt::xarray to an xt::xtensor<float, N> first");
  if constexpr (HasFixedRank<E>) return std::tuple_size_v<std::remove_cvref_t<decltype(std::declval<const E&>().shape())>>;
  return std::size_t{0};
}();

/// What ops and layers see of an input: where it is and its shape. Does not own; row-major without gaps.
struct TensorView {
  const float* data = nullptr;
  Shape shape;
};

/// Throws SHAPE above rank 8.
template <class Dims>
Shape to_shape(const Dims& dims) {
  if (dims.size() > Shape::kMaxRank) fail(ErrorCode::shape, "attn", "a tensor", {"rank 8 at the most"}, {"rank ", dims.size()});
  Shape shape;
  for (const auto dim : dims) shape.push_back(static_cast<std::int64_t>(dim));
  return shape;
}

/// Throws as to_shape.
template <class Steps>
Strides to_strides(const Steps& steps) {
  Strides strides{};
  if (steps.size() > strides.size()) fail(ErrorCode::shape, "attn", "a tensor", {"rank 8 at the most"}, {"rank ", steps.size()});
  std::copy(steps.begin(), steps.end(), strides.begin());
  return strides;
}

/// A view that is a row-major block of its tensor is taken where it lies. Throws SHAPE where the tensor is column-major or a view
/// with gaps: evaluate it into an xt::xtensor first.
template <TensorLike E>
TensorView view_of(const E& tensor, const char* op, const char* argument) {
  if (tensor.shape().size() > Shape::kMaxRank) fail(ErrorCode::shape, op, argument, {"rank 8 at the most"}, {"rank ", tensor.shape().size()});
  TensorView view{tensor.data() + tensor.data_offset(), to_shape(tensor.shape())};
  std::int64_t stride = 1;
  for (std::size_t axis = view.shape.rank(); axis-- > 0; stride *= view.shape[axis])
    if (view.shape[axis] > 1 && static_cast<std::int64_t>(tensor.strides()[axis]) != stride)
      fail(ErrorCode::shape, op, argument, {"row-major and without gaps"}, {"strided"});
  return view;
}

/// An uninitialised tensor of that shape.
template <std::size_t N>
Tensor<N> empty(const Shape& shape) {
  std::array<std::size_t, N> dims{};
  for (std::size_t axis = 0; axis < N; ++axis) dims[axis] = static_cast<std::size_t>(shape[axis]);
  return Tensor<N>(dims);
}

inline AnyTensor empty_any(const Shape& shape) {
  AnyTensor::shape_type dims(shape.rank());
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) dims[axis] = static_cast<std::size_t>(shape[axis]);
  return AnyTensor(dims);
}

}  // namespace attn
