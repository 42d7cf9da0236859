#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "attn/tensor/tensor.hpp"

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
  Strides strides;                              ///< those of the last dimension are 1
  std::shared_ptr<const void> owner = nullptr;  ///< of the numbers, where that is not the caller

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

/// Masks out of what xtensor has. Numbers that lie in rows stay where they are, and have to live as long as the mask; what has to be
/// computed, or has no other owner, is kept by the mask.
class Mask : public MaskView {
 public:
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
  template <class E>
  Mask(MaskKind kind, E&& mask);
  template <class E>
  bool point_to_rows(const E& tensor) {
    if (!rows_without_gaps(to_shape(tensor.shape()), to_strides(tensor.strides()))) return false;
    point_to(tensor);
    return true;
  }
  template <class E>
  void evaluate(const E& mask) {
    const auto keep = [&](auto kept) {
      point_to(*kept);
      owner = std::move(kept);
    };
    if (kind == MaskKind::additive)
      keep(std::make_shared<const AnyTensor>(mask));
    else
      keep(std::make_shared<const AnyBytes>(xt::not_equal(mask, 0)));
  }
  using AnyBytes = xt::xarray_container<xt::uvector<std::uint8_t>, xt::layout_type::row_major, xt::svector<std::size_t, Shape::kMaxRank>>;

  template <class E>
  void point_to(const E& tensor) {
    if constexpr (std::is_same_v<typename E::value_type, float>)
      values = tensor.data() + tensor.data_offset();
    else
      flags = reinterpret_cast<const std::uint8_t*>(tensor.data() + tensor.data_offset());
    shape = to_shape(tensor.shape());
    strides = to_strides(tensor.strides());
  }
};

template <class E>
Mask::Mask(MaskKind kind_of_mask, E&& mask) {
  using Given = std::remove_cvref_t<E>;
  kind = kind_of_mask;
  if constexpr (HasData<Given>) {
    using Value = typename Given::value_type;
    constexpr bool kFloat = std::is_same_v<Value, float>, kByte = std::is_same_v<Value, bool> || std::is_same_v<Value, std::uint8_t>;
    if constexpr (kFloat || kByte)
      if (kFloat || kind != MaskKind::additive) {
        if constexpr (std::is_lvalue_reference_v<E>) {
          if (point_to_rows(mask)) return;
        } else {
          auto kept = std::make_shared<const Given>(std::move(mask));
          if (point_to_rows(*kept))
            owner = std::move(kept);
          else
            evaluate(*kept);
          return;
        }
      }
  }
  evaluate(mask);
}

}  // namespace attn
