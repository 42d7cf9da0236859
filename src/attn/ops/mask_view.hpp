#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "attn/tensor/owner.hpp"
#include "attn/tensor/shape.hpp"

namespace attn {

enum class MaskKind : std::uint8_t {
  attend,    ///< non-zero: may attend (torch's scaled_dot_product_attention, ONNX, Hugging Face)
  block,     ///< non-zero: blocked (torch's nn.MultiheadAttention)
  additive,  ///< added to the scaled scores; -infinity blocks
};

/// View of a mask that determines which keys a query may attend to. Shape (S), (L,S), (B,L,S) or (B,H,L,S), where any of B, H, L may be 1; as
/// a key padding mask (B,S). The kind is always explicit, because libraries use the same values with opposite meanings.
struct MaskView {
  MaskKind kind = MaskKind::attend;
  const std::uint8_t* flags = nullptr;  ///< of an attend or block mask: one byte per element, zero or non-zero
  const float* values = nullptr;        ///< of an additive mask, or of an attend or block mask of floats
  Shape shape;
  Strides strides;  ///< 1 in the last dimension

  MaskView() = default;
  /// Refers to a contiguous row-major mask.
  MaskView(MaskKind of_kind, const std::uint8_t* from, const Shape& dims) : kind(of_kind), flags(from), shape(dims), strides(strides_of(dims)) {}
  MaskView(MaskKind of_kind, const bool* from, const Shape& dims) : MaskView(of_kind, reinterpret_cast<const std::uint8_t*>(from), dims) {}
  MaskView(MaskKind of_kind, const float* from, const Shape& dims) : kind(of_kind), values(from), shape(dims), strides(strides_of(dims)) {}

  /// Whether the element at that offset allows attention to its key.
  bool attends(std::ptrdiff_t place) const;
  /// Stride of that dimension; 0 if its size is 1, so that it broadcasts.
  std::ptrdiff_t step(std::size_t axis) const { return shape[axis] == 1 ? 0 : strides[axis]; }
};

/// A mask for options, made by attend(), block() or additive() from an xtensor expression, or from a view. A tensor with contiguous rows is
/// referred to, not copied, and must outlive the mask; temporaries and computed values are owned by the mask.
class Mask : public MaskView {
 public:
  Mask() = default;
  Mask(const MaskView& view) : MaskView(view) {}

  /// Accepts bytes, bools, floats or anything else that compares with 0.
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
  // Defined in mask.hpp, which includes xtensor.
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
