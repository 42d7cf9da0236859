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

// Inputs of the compiled library: views of memory. tensor.hpp adds xtensor.
namespace attn {

/// Tensors with data in memory: xt::xtensor, xt::xarray, xt::adapt of your own memory, or views of them.
template <class E>
concept HasData = requires(const E& e) {
  e.data();
  { e.data_offset() } -> std::convertible_to<std::size_t>;
  e.shape();
  e.strides();
};

/// A float tensor of the caller: any xtensor expression.
template <class E>
concept TensorLike = std::same_as<typename E::value_type, float> && requires(const E& e) {
  e.shape();
  e.dimension();
};

/// A float32 tensor in memory that it does not own: element (i,j,..) is at data[i · strides[0] + j · strides[1] + ..].
/// Works with pointers, spans, std::vector, Eigen or Arrow. The elements of a row (the last dimension) must be
/// adjacent.
/// @code
/// const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
/// const attn::TensorView rows(numbers.data(), {2, 2}, {3, 1});  // the first two columns of (2,3)
/// std::cout << rows.data[1 * rows.strides[0] + 1];  // 5
/// @endcode
struct TensorView {
  const float* data = nullptr;
  Shape shape;
  Strides strides{};

  TensorView() = default;
  /// Refers to a row-major tensor without gaps, or to one with these strides, in elements.
  TensorView(const float* from, const Shape& dims) : data(from), shape(dims), strides(strides_of(dims)) {}
  TensorView(const float* from, const Shape& dims, const Strides& steps) : data(from), shape(dims), strides(steps) {}
};

/// Type of results, row-major. tensor.hpp defines it and calls it Tensor<N>. N is the rank, or kAnyRank.
template <std::size_t N, class T>
struct TensorType;
template <std::size_t N, class T = float>
using TensorOf = typename TensorType<N, T>::type;
/// Rank of a tensor whose rank is known only at run time.
inline constexpr std::size_t kAnyRank = ~std::size_t{0};
/// kAnyRank, but dependent on N as in kBeside.
template <std::size_t N>
inline constexpr std::size_t kAnyBeside = kAnyRank;
/// M, but dependent on N, so that the type of a result is looked up only when it is used: xtensor may not be included
/// yet.
template <std::size_t N, std::size_t M>
inline constexpr std::size_t kBeside = M;

namespace detail {

/// Returns an uninitialised tensor.
template <std::size_t N, class T = float>
TensorOf<N, T> empty(const Shape& shape);

}  // namespace detail

template <class E>
concept HasFixedRank = requires { std::tuple_size<std::remove_cvref_t<decltype(std::declval<const E&>().shape())>>::value; };

/// Rank of an input of an op or layer, which determines the rank of the result.
template <class E>
inline constexpr std::size_t kRankOf = [] {
  static_assert(HasFixedRank<E>, "the rank of an input must be known to the compiler: assign an xt::xarray to an xt::xtensor<float, N> first");
  if constexpr (HasFixedRank<E>) return std::tuple_size_v<std::remove_cvref_t<decltype(std::declval<const E&>().shape())>>;
  return std::size_t{0};
}();

/// Converts dimensions. Throws SHAPE if the rank exceeds 8.
/// @code
/// xt::xtensor<float, 2> x = xt::zeros<float>({3, 4});
/// std::cout << to_string(attn::to_shape(x.shape()));  // (3,4)
/// @endcode
template <class Dims>
Shape to_shape(const Dims& dims) {
  if (dims.size() > Shape::kMaxRank) detail::fail(ErrorCode::shape, "attn", "a tensor", {"a rank of at most 8"}, {"rank ", dims.size()});
  Shape shape;
  for (const auto dim : dims) shape.push_back(static_cast<std::int64_t>(dim));
  return shape;
}

/// Converts strides. Throws SHAPE if the rank exceeds 8.
/// @code
/// xt::xtensor<float, 2> x = xt::zeros<float>({3, 4});
/// std::cout << attn::to_strides(x.strides())[0];  // 4
/// @endcode
template <class Steps>
Strides to_strides(const Steps& steps) {
  Strides strides{};
  if (steps.size() > strides.size()) detail::fail(ErrorCode::shape, "attn", "a tensor", {"a rank of at most 8"}, {"rank ", steps.size()});
  for (std::size_t axis = 0; axis < steps.size(); ++axis) strides[axis] = static_cast<std::ptrdiff_t>(steps[axis]);
  return strides;
}

namespace detail {

/// Writes the elements of an expression in row-major order. Defined in tensor.hpp.
template <class E>
void copy_elements(const E& expression, float* to);

/// An input of a call: a view of the given tensor, or of a copy if its rows have gaps or it is an expression.
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
  Input(const Input&) = delete;  // may point to copy_
  Input& operator=(const Input&) = delete;

 private:
  std::vector<float> copy_;
};

}  // namespace detail

/// A tensor that owns its numbers together with its copies. For members of options, which may outlive the tensors they
/// are made from.
/// @code
/// attn::CrossEntropyOptions options;
/// options.weight = attn::TensorCopy(xt::xtensor<float, 1>{1, 3});
/// xt::xtensor<float, 2> logits{{0, 0}, {0, 0}};
/// std::cout << attn::cross_entropy(logits, std::vector<int>{0, 1}, options).gradient;  // {{-0.125, 0.125}, { 0.375, -0.375}}
/// @endcode
class TensorCopy : public TensorView {
 public:
  TensorCopy() = default;
  /// Copies the numbers of a view or an expression.
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
