#pragma once

#include <cstdint>
#include <utility>

#include "attn/tensor/tensor.hpp"

namespace attn {

enum class MaskKind : std::uint8_t {
  attend,    ///< non-zero = may attend (torch's scaled_dot_product_attention, ONNX, Hugging Face)
  block,     ///< non-zero = blocked (torch's nn.MultiheadAttention)
  additive,  ///< added to the scaled scores; -infinity blocks
};

/// Which keys a query may see. Dims (S), (L,S), (B,L,S) or (B,H,L,S); any of B, H, L may be 1. As a key padding mask (B,S).
/// The kind is always said: the same numbers mean opposite things in different places.
class Mask {
 public:
  template <class E>
  static Mask attend(const xt::xexpression<E>& mask) {
    return Mask(MaskKind::attend, xt::not_equal(mask.derived_cast(), 0), {});
  }
  template <class E>
  static Mask block(const xt::xexpression<E>& mask) {
    return Mask(MaskKind::block, xt::not_equal(mask.derived_cast(), 0), {});
  }
  template <class E>
  static Mask additive(const xt::xexpression<E>& mask) {
    return Mask(MaskKind::additive, {}, mask.derived_cast());
  }
  /// A copy of row-major values without gaps.
  static Mask copy_of(MaskKind kind, const float* values, const Shape& shape);
  /// The same for an attend or block mask.
  static Mask copy_of(MaskKind kind, const std::uint8_t* flags, const Shape& shape);

  MaskKind kind() const { return kind_; }
  Shape shape() const { return kind_ == MaskKind::additive ? to_shape(added_.shape()) : to_shape(flags_.shape()); }

  /// 0 / 1 of an attend or block mask.
  const xt::xarray<std::uint8_t>& flags() const { return flags_; }
  /// Values of an additive mask.
  const xt::xarray<float>& added() const { return added_; }

 private:
  Mask(MaskKind kind, xt::xarray<std::uint8_t> flags, xt::xarray<float> added) : kind_(kind), flags_(std::move(flags)), added_(std::move(added)) {}
  template <class T>
  static Mask with_flags(MaskKind kind, const T* values, const Shape& shape);

  MaskKind kind_;
  xt::xarray<std::uint8_t> flags_;
  xt::xarray<float> added_;
};

}  // namespace attn
