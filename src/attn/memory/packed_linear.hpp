#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/memory/panels.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"
#include "attn/tensor/view.hpp"

namespace attn {
namespace detail {

/// y (..,rows) = x Wᵀ + b, weight (rows,in).
template <class Weight>
struct PanelProduct {
  const Panels<Weight>* weight = nullptr;
  std::size_t rows = 0;
  const float* bias = nullptr;  ///< (rows) or null
  float* y = nullptr;
};

/// Multiplies the same x (..,in) by all weights. finish_row(row, worker) is called once all results of a row are
/// written. The scratch holds x in the weights' format.
template <class Weight>
void multiply(std::span<const PanelProduct<Weight>> products, const Rows& x, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr);
/// y = x Wᵀ + b with a weight (out,in) that is packed only for this product; the bias may be null.
void multiply(const TensorView& weight, const float* bias, const Rows& x, float* y, Scratch& scratch);

}  // namespace detail

/// Packed at loading. `Weight` is the type of the stored numbers, see panels.hpp.
template <class Weight>
class BasicPackedLinear {
 public:
  BasicPackedLinear() = default;
  BasicPackedLinear(const float* weight, const float* bias, std::int64_t out_features, std::int64_t in_features);

  std::int64_t in_features() const { return in_features_; }
  std::int64_t out_features() const { return out_features_; }

  /// y (rows,out) = x Wᵀ + b, without gaps; see detail::multiply().
  void forward(const detail::Rows& x, float* y, detail::Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const;
  detail::PanelProduct<Weight> product(float* y) const {
    return {&panels_, static_cast<std::size_t>(out_features_), bias_.empty() ? nullptr : bias_.data(), y};
  }

  void unpack_weight(float* weight) const;

  void allocate_weight(std::int64_t out_features, std::int64_t in_features);
  void set_weight_rows(std::size_t first, std::span<const float> rows);

  detail::Panels<Weight>& weight() { return panels_; }
  const detail::Panels<Weight>& weight() const { return panels_; }
  const std::vector<float>& bias() const { return bias_; }
  std::vector<float>& bias() { return bias_; }

 private:
  std::int64_t in_features_ = 0, out_features_ = 0;
  detail::Panels<Weight> panels_;
  std::vector<float> bias_;
};

using PackedLinear = BasicPackedLinear<float>;
using QuantizedLinear = BasicPackedLinear<std::int8_t>;
extern template class BasicPackedLinear<float>;
extern template class BasicPackedLinear<std::int8_t>;

namespace detail {
/// x (rows,in) = y W, y (rows,out), both without gaps; sums over out in order.
void multiply_by_weight(const Panels<float>& weight, std::size_t out, std::size_t in, const float* y, std::size_t rows, float* x, Scratch& scratch);
/// product (n,k) = yᵀ x, y (rows,n), x (rows,k); sums over the rows in order.
void multiply_transposed(const TensorView& y, const TensorView& x, float* product, Scratch& scratch);
}  // namespace detail
}  // namespace attn
