#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "attn/ops/mask_view.hpp"
#include "attn/tensor/tensor.hpp"

// Construction of masks from xtensor expressions.
namespace attn {

template <class E>
void Mask::point_to(const E& tensor) {
  if constexpr (std::is_same_v<typename E::value_type, float>)
    values = tensor.data() + tensor.data_offset();
  else
    flags = reinterpret_cast<const std::uint8_t*>(tensor.data() + tensor.data_offset());
  shape = to_shape(tensor.shape());
  strides = to_strides(tensor.strides());
}

template <class E>
bool Mask::point_to_rows(const E& tensor) {
  if (!rows_without_gaps(to_shape(tensor.shape()), to_strides(tensor.strides()))) return false;
  point_to(tensor);
  return true;
}

template <class E>
void Mask::evaluate(const E& mask) {
  const auto keep = [&](auto kept) {
    point_to(*kept);
    owner_ = std::move(kept);
  };
  if (kind == MaskKind::additive)
    keep(std::make_shared<const AnyTensor>(mask));
  else
    keep(std::make_shared<const TensorOf<kAnyRank, std::uint8_t>>(xt::not_equal(mask, 0)));
}

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
            owner_ = std::move(kept);
          else
            evaluate(*kept);
          return;
        }
      }
  }
  evaluate(mask);
}

}  // namespace attn
