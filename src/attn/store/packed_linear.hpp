#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/parallel/thread_pool.hpp"
#include "attn/store/panels.hpp"
#include "attn/store/scratch.hpp"
#include "attn/tensor/rows.hpp"
#include "attn/tensor/view.hpp"

namespace attn {

/// A weight (out,in) and bias (out) or none in the order in which the GEMM reads them, made once, when weights are
/// loaded. Weight is how each number of the weight is kept, see panels.hpp.
template <class Weight>
class BasicPackedLinear {
 public:
  BasicPackedLinear() = default;
  BasicPackedLinear(const float* weight, const float* bias, std::int64_t out_features, std::int64_t in_features);
  /// A weight (out,in) whose rows may lie apart.
  BasicPackedLinear(const TensorView& weight, const float* bias);

  std::int64_t in_features() const { return in_features_; }
  std::int64_t out_features() const { return out_features_; }

  /// y = x Wᵀ + b, x (rows,in) and y (rows,out), y without gaps. Where finish_row is given, finish_row(row, worker) is called once for
  /// each row when all of it is written. The scratch is for what the weights want x turned into.
  void forward(const detail::Rows& x, float* y, detail::Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const;

  /// Several maps of one x, shared out among the threads as one.
  struct Output {
    const BasicPackedLinear* linear;
    float* y;
  };
  static void forward(std::span<const Output> outputs, const detail::Rows& x, detail::Scratch& scratch,
                      const parallel::TaskRef* finish_row = nullptr);

  /// x (rows,in) = y W, y (rows,out), both without gaps; Σ over out in its order.
  void multiply_by_weight(const float* y, std::size_t rows, float* x, detail::Scratch& scratch) const
    requires std::same_as<Weight, float>;

  /// Writes the weight (out,in).
  void unpack_weight(float* weight) const;

  /// Room for a weight, and all of it zero; the bias stays as it is.
  void allocate_weight(std::int64_t out_features, std::int64_t in_features);
  /// Whole rows of the weight from row `first` on, for weights that come in pieces.
  void set_weight_rows(std::size_t first, std::span<const float> rows);

  detail::Panels<Weight>& weight() { return panels_; }
  const detail::Panels<Weight>& weight() const { return panels_; }
  /// (out) or empty.
  const std::vector<float>& bias() const { return bias_; }
  std::vector<float>& bias() { return bias_; }

 private:
  std::size_t panels() const;

  std::int64_t in_features_ = 0, out_features_ = 0;
  detail::Panels<Weight> panels_;
  std::vector<float> bias_;
};

using PackedLinear = BasicPackedLinear<float>;
using QuantizedLinear = BasicPackedLinear<std::int8_t>;
extern template class BasicPackedLinear<float>;
extern template class BasicPackedLinear<std::int8_t>;

namespace detail {
/// product (n,k) = yᵀ x, y (rows,n) and x (rows,k); Σ over the rows in their order.
void multiply_transposed(const TensorView& y, const TensorView& x, float* product, Scratch& scratch);
}  // namespace detail
}  // namespace attn
