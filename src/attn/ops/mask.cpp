#include "attn/ops/mask.hpp"

#include <algorithm>

// Loops of our own: xtensor's evaluation of an expression is some 10 KB of WebAssembly for each type.
namespace attn {

template <class T>
Mask Mask::with_flags(MaskKind kind, const T* values, const Shape& shape) {
  xt::xarray<std::uint8_t>::shape_type dims(shape.rank());
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) dims[axis] = static_cast<std::size_t>(shape[axis]);
  xt::xarray<std::uint8_t> flags(dims);
  std::transform(values, values + flags.size(), flags.data(), [](T value) { return value != 0 ? std::uint8_t{1} : std::uint8_t{0}; });
  return Mask(kind, std::move(flags), {});
}

Mask Mask::copy_of(MaskKind kind, const float* values, const Shape& shape) {
  if (kind != MaskKind::additive) return with_flags(kind, values, shape);
  AnyTensor added = empty_any(shape);
  std::copy_n(values, added.size(), added.data());
  return Mask(kind, {}, std::move(added));
}

Mask Mask::copy_of(MaskKind kind, const std::uint8_t* flags, const Shape& shape) { return with_flags(kind, flags, shape); }

}  // namespace attn
