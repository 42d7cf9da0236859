#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "attn/tensor/owner.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {

enum class MaskKind : std::uint8_t {
  attend,    ///< non-zero = may attend (torch's scaled_dot_product_attention, ONNX, Hugging Face)
  block,     ///< non-zero = blocked (torch's nn.MultiheadAttention)
  additive,  ///< added to the scaled scores; -infinity blocks
};

/// Which keys a query may see, where the numbers lie. Dims (S), (L,S), (B,L,S) or (B,H,L,S); any of B, H, L may be 1. As a key padding
/// mask (B,S). The kind is always said: the same numbers mean opposite things in different places.
struct MaskView {
  MaskKind kind = MaskKind::attend;
  const std::uint8_t* flags = nullptr;  ///< of an attend or block mask: 0 or not, a byte each
  const float* values = nullptr;        ///< of an additive mask, and of others that are no bytes
  Shape shape;
  Strides strides;  ///< those of the last dimension are 1

  MaskView() = default;
  /// Row-major and without gaps.
  MaskView(MaskKind of_kind, const std::uint8_t* from, const Shape& dims) : kind(of_kind), flags(from), shape(dims), strides(strides_of(dims)) {}
  MaskView(MaskKind of_kind, const bool* from, const Shape& dims) : MaskView(of_kind, reinterpret_cast<const std::uint8_t*>(from), dims) {}
  MaskView(MaskKind of_kind, const float* from, const Shape& dims) : kind(of_kind), values(from), shape(dims), strides(strides_of(dims)) {}

  /// Whether the number at that place, in elements from the first, lets a key be seen.
  bool attends(std::ptrdiff_t place) const;
  /// How far the next element of that dimension is: 0 where there is only one, which stands for all.
  std::ptrdiff_t step(std::size_t axis) const { return shape[axis] == 1 ? 0 : strides[axis]; }
};

/// A mask of options: of what xtensor has, by attend(), block() and additive(), or a view. Numbers that lie in rows stay where they are,
/// and have to live as long as the mask; what has to be computed, or has no other owner, is kept by the mask.
class Mask : public MaskView {
 public:
  Mask() = default;
  Mask(const MaskView& view) : MaskView(view) {}

  /// Bytes, bools, floats or anything else that compares with 0.
  template <class E>
  static Mask attend(E&& mask) {
    return Mask(MaskKind::attend, std::forward<E>(mask));
  }
  template <class E>
  static Mask block(E&& mask) {
    return Mask(MaskKind::block, std::forward<E>(mask));
  }
  template <class E>
  static Mask additive(E&& mask) {
    return Mask(MaskKind::additive, std::forward<E>(mask));
  }

 private:
  // In mask.hpp, which knows xtensor.
  template <class E>
  Mask(MaskKind kind_of_mask, E&& mask);
  template <class E>
  void point_to(const E& tensor);
  template <class E>
  bool point_to_rows(const E& tensor);
  template <class E>
  void evaluate(const E& mask);

  Owner owner_;
};

}  // namespace attn
