#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "attn/tensor/error.hpp"
#include "attn/tensor/owner.hpp"
#include "attn/tensor/shape.hpp"

// What the compiled library takes: places in memory. tensor.hpp puts xtensor above it.
namespace attn {

/// What lies in memory: xt::xtensor, an xt::adapt of memory of one's own, a view of either or xt::xarray.
template <class E>
concept HasData = requires(const E& e) {
  e.data();
  { e.data_offset() } -> std::convertible_to<std::size_t>;
  e.shape();
  e.strides();
};

/// A float tensor of the user's: any expression of xtensor's.
template <class E>
concept TensorLike = std::same_as<typename E::value_type, float> && requires(const E& e) {
  e.shape();
  e.dimension();
};

/// A float32 tensor where it lies: element (i,j,..) is at data[i · strides[0] + j · strides[1] + ..]. Does not own; for pointers, spans,
/// std::vector, Eigen or Arrow. The numbers of a row, which is what the last dimension counts, lie side by side.
struct TensorView {
  const float* data = nullptr;
  Shape shape;
  Strides strides{};

  TensorView() = default;
  /// Row-major and without gaps.
  TensorView(const float* from, const Shape& dims) : data(from), shape(dims), strides(strides_of(dims)) {}
  TensorView(const float* from, const Shape& dims, const Strides& steps) : data(from), shape(dims), strides(steps) {}
};

/// What results are made of, row-major: tensor.hpp says of what kind, and calls it Tensor<N>. N is the rank, or kAnyRank.
template <std::size_t N, class T>
struct TensorType;
template <std::size_t N, class T = float>
using TensorOf = typename TensorType<N, T>::type;
/// Of a tensor whose rank is known at run time only.
inline constexpr std::size_t kAnyRank = ~std::size_t{0};
/// The same beside a tensor of rank N.
template <std::size_t N>
inline constexpr std::size_t kAnyBeside = kAnyRank;
/// Rank M beside a tensor of rank N: names of types that depend on N, for xtensor may not be there yet.
template <std::size_t N, std::size_t M>
inline constexpr std::size_t kBeside = M;

namespace detail {

/// An uninitialised tensor of that shape.
template <std::size_t N, class T = float>
TensorOf<N, T> empty(const Shape& shape);

}  // namespace detail

template <class E>
concept HasFixedRank = requires { std::tuple_size<std::remove_cvref_t<decltype(std::declval<const E&>().shape())>>::value; };

/// Of an input of an op or layer, whose result has a rank that follows from it.
template <class E>
inline constexpr std::size_t kRankOf = [] {
  static_assert(HasFixedRank<E>, "the rank of an input must be known to the compiler: assign an xt::xarray to an xt::xtensor<float, N> first");
  if constexpr (HasFixedRank<E>) return std::tuple_size_v<std::remove_cvref_t<decltype(std::declval<const E&>().shape())>>;
  return std::size_t{0};
}();

/// Throws SHAPE above rank 8.
template <class Dims>
Shape to_shape(const Dims& dims) {
  if (dims.size() > Shape::kMaxRank) detail::fail(ErrorCode::shape, "attn", "a tensor", {"a rank of at most 8"}, {"rank ", dims.size()});
  Shape shape;
  for (const auto dim : dims) shape.push_back(static_cast<std::int64_t>(dim));
  return shape;
}

/// Throws as to_shape.
template <class Steps>
Strides to_strides(const Steps& steps) {
  Strides strides{};
  if (steps.size() > strides.size()) detail::fail(ErrorCode::shape, "attn", "a tensor", {"a rank of at most 8"}, {"rank ", steps.size()});
  for (std::size_t axis = 0; axis < steps.size(); ++axis) strides[axis] = static_cast<std::ptrdiff_t>(steps[axis]);
  return strides;
}

namespace detail {

/// Writes the elements of an expression in row-major order; tensor.hpp knows how.
template <class E>
void copy_elements(const E& expression, float* to);

/// An input of the caller's as the library takes it: where it lies, or a copy where its rows have gaps or it is yet to be computed.
template <TensorLike E>
class Input : public TensorView {
 public:
  Input(const E& given, const char* op, const char* argument) {
    if (given.dimension() > Shape::kMaxRank) fail(ErrorCode::shape, op, argument, {"a rank of at most 8"}, {"rank ", given.dimension()});
    const Shape dims = to_shape(given.shape());
    if constexpr (HasData<E>) {
      const Strides steps = to_strides(given.strides());
      if (rows_without_gaps(dims, steps)) {
        TensorView::operator=({given.data() + given.data_offset(), dims, steps});
        return;
      }
    }
    copy_.resize(static_cast<std::size_t>(checked_size(dims, op, argument)));
    copy_elements(given, copy_.data());
    TensorView::operator=({copy_.data(), dims});
  }
  Input(const Input&) = delete;  // it points to its copy
  Input& operator=(const Input&) = delete;

 private:
  std::vector<float> copy_;
};

}  // namespace detail

/// A tensor with numbers of its own, which copies of it share: a member of options that may outlive what they were made of.
class TensorCopy : public TensorView {
 public:
  TensorCopy() = default;
  explicit TensorCopy(const TensorView& given);
  template <TensorLike E>
  TensorCopy(const E& given) {
    const Shape dims = to_shape(given.shape());
    auto numbers = std::make_shared<std::vector<float>>(static_cast<std::size_t>(checked_size(dims, "attn", "a tensor")));
    detail::copy_elements(given, numbers->data());
    TensorView::operator=({numbers->data(), dims});
    owner_ = std::move(numbers);
  }

 private:
  Owner owner_;
};

}  // namespace attn
