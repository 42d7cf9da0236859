#pragma once

#include <cstddef>
#include <span>

#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/results.hpp"
#include "attn/tensor/rows.hpp"

namespace attn {

/// A weight (out,in) and bias (out) or none in the order in which the GEMM reads them, made once, when weights are
/// loaded. Packing moves numbers and changes none: unpack() gives back the same bits.
class PackedLinear {
 public:
  PackedLinear() = default;
  PackedLinear(const float* weight, const float* bias, std::int64_t out_features, std::int64_t in_features);
  /// A weight (out,in) whose rows may lie apart.
  PackedLinear(const TensorView& weight, const float* bias);
  /// All zeros.
  PackedLinear(std::int64_t out_features, std::int64_t in_features);

  std::int64_t in_features() const { return in_features_; }
  std::int64_t out_features() const { return out_features_; }

  /// y = x Wᵀ + b, x (rows,in) and y (rows,out), y without gaps. Where finish_row is given, finish_row(row, worker) is called once for
  /// each row when all of it is written.
  void forward(const detail::Rows& x, float* y, const parallel::TaskRef* finish_row = nullptr) const;
  /// x without gaps.
  void forward(const float* x, std::int64_t rows, float* y, const parallel::TaskRef* finish_row = nullptr) const;

  /// Several maps of one x, shared out among the threads as one.
  struct Output {
    const PackedLinear* linear;
    float* y;
  };
  static void forward(std::span<const Output> outputs, const detail::Rows& x, const parallel::TaskRef* finish_row = nullptr);

  /// Writes the weight (out,in), and the bias (out) unless null.
  void unpack(float* weight, float* bias) const;

  /// Numbers of the weight from the row-major index `first` on, and of the bias; for weights that come in pieces.
  void set_weight(std::size_t first, std::span<const float> values);
  void set_bias(std::size_t first, std::span<const float> values);

 private:
  /// Rows [i, i + rows) of y, of the panels from first up to last.
  void multiply(const detail::Rows& x, std::size_t i, std::size_t rows, std::size_t first, std::size_t last, float* y) const;
  std::size_t panels() const;

  std::int64_t in_features_ = 0, out_features_ = 0;
  AlignedFloats panels_;
};

namespace detail {
/// Shape of the result after all checks.
Shape check_linear(const TensorView& x, const TensorView& weight, const TensorView* bias);
void linear(const TensorView& x, const TensorView& weight, const TensorView* bias, float* y);
}  // namespace detail

/// x Wᵀ + b                                                                         (torch.nn.functional.linear)
/// x (..,in), weight (out,in), bias (out) -> (..,out), of x's rank.
/// Throws SHAPE when widths disagree, MEMORY.
template <TensorLike X, TensorLike W>
auto linear(const X& x, const W& weight) {
  const detail::Input x_view(x, "linear", "x");
  const detail::Input w_view(weight, "linear", "weight");
  auto y = empty<kRankOf<X>>(detail::check_linear(x_view, w_view, nullptr));
  detail::linear(x_view, w_view, nullptr, y.data());
  return y;
}

template <TensorLike X, TensorLike W, TensorLike Bias>
auto linear(const X& x, const W& weight, const Bias& bias) {
  const detail::Input x_view(x, "linear", "x");
  const detail::Input w_view(weight, "linear", "weight");
  const detail::Input b_view(bias, "linear", "bias");
  auto y = empty<kRankOf<X>>(detail::check_linear(x_view, w_view, &b_view));
  detail::linear(x_view, w_view, &b_view, y.data());
  return y;
}

}  // namespace attn
