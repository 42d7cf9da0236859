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
/// @code
/// const std::vector<std::uint8_t> flags{0, 1};
/// const attn::MaskView keys(attn::MaskKind::attend, flags.data(), {2});
/// xt::xtensor<float, 2> q{{1}}, k{{1}, {1}}, v{{1}, {3}};
/// std::cout << attn::scaled_dot_product_attention(q, k, v, {.mask = attn::Mask(keys)}).output;  // {{ 3.}}
/// @endcode
struct MaskView {
  MaskKind kind = MaskKind::attend;
  const std::uint8_t* flags = nullptr;  ///< of an attend or block mask: one byte per element, zero or non-zero
  const float* values = nullptr;        ///< of an additive mask, or of an attend or block mask of floats
  Shape shape;
  Strides strides;  ///< 1 in the last dimension

  MaskView() = default;
  /// Refers to a contiguous row-major mask of bytes, bools or floats.
  MaskView(MaskKind of_kind, const std::uint8_t* from, const Shape& dims) : kind(of_kind), flags(from), shape(dims), strides(strides_of(dims)) {}
  MaskView(MaskKind of_kind, const bool* from, const Shape& dims) : MaskView(of_kind, reinterpret_cast<const std::uint8_t*>(from), dims) {}
  MaskView(MaskKind of_kind, const float* from, const Shape& dims) : kind(of_kind), values(from), shape(dims), strides(strides_of(dims)) {}

  /// Returns whether the element at an offset, the sum of index · step() over the dimensions, lets a query attend to its
  /// key.
  /// @code
  /// const std::vector<std::uint8_t> flags{0, 1, 1, 0};
  /// const attn::MaskView mask(attn::MaskKind::block, flags.data(), {2, 2});
  /// std::cout << mask.attends(1 * mask.step(0) + 1 * mask.step(1)) << ' ' << mask.attends(1);  // 1 0
  /// @endcode
  bool attends(std::ptrdiff_t place) const;
  /// Returns the stride of a dimension; 0 if its size is 1, so that it broadcasts. attends() has an example.
  std::ptrdiff_t step(std::size_t axis) const { return shape[axis] == 1 ? 0 : strides[axis]; }
};

/// A mask for options, made by attend(), block() or additive() from an xtensor expression, or from a view. A tensor with contiguous rows is
/// referred to, not copied, and must outlive the mask; temporaries and computed values are owned by the mask.
/// @code
/// xt::xtensor<float, 2> x{{1, 0}, {0, 1}}, v{{1}, {3}};
/// xt::xtensor<bool, 2> earlier{{true, false}, {true, true}};
/// const auto causal = attn::Mask::attend(earlier);
/// std::cout << attn::scaled_dot_product_attention(x, x, v, {.mask = causal}).output(0, 0);  // 1
/// @endcode
class Mask : public MaskView {
 public:
  Mask() = default;
  /// Refers to the memory of a view, which must outlive the mask.
  Mask(const MaskView& view) : MaskView(view) {}

  /// Creates a mask whose non-zero elements let a query attend to a key. Accepts bytes, bools, floats or anything else that compares with 0.
  /// @code
  /// xt::xtensor<float, 2> q{{1}}, k{{1}, {1}}, v{{1}, {3}};
  /// xt::xtensor<bool, 1> keys{false, true};
  /// std::cout << attn::scaled_dot_product_attention(q, k, v, {.mask = attn::Mask::attend(keys)}).output;  // {{ 3.}}
  /// @endcode
  template <class E>
  static Mask attend(E&& mask) {
    return Mask(MaskKind::attend, std::forward<E>(mask));
  }
  /// Creates a mask whose non-zero elements block a key. Accepts the same types as attend().
  /// @code
  /// xt::xtensor<float, 2> q{{1}}, k{{1}, {1}}, v{{1}, {3}};
  /// xt::xtensor<bool, 1> keys{false, true};
  /// std::cout << attn::scaled_dot_product_attention(q, k, v, {.mask = attn::Mask::block(keys)}).output;  // {{ 1.}}
  /// @endcode
  template <class E>
  static Mask block(E&& mask) {
    return Mask(MaskKind::block, std::forward<E>(mask));
  }
  /// Creates a mask of floats that are added to the scaled scores; -infinity blocks a key. The call that uses it throws MASK for NaN and +infinity.
  /// @code
  /// xt::xtensor<float, 2> q{{1, 0}, {0, 1}}, v{{1}, {3}};
  /// const auto bias = attn::Mask::additive(attn::alibi_bias(1, 2));
  /// std::cout << (*attn::scaled_dot_product_attention(q, q, v, {.mask = bias, .need_weights = true}).weights)(0, 1);  // 0.329375
  /// @endcode
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
