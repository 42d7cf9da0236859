#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "attn/ops/mask_view.hpp"
#include "attn/tensor/tensor.hpp"

namespace attn {

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
  using AnyBytes = TensorOf<kAnyRank, std::uint8_t>;

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
