#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/ops/elementary.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Options for apply_rotary(), and for layers that rotate queries and keys.
struct RotaryOptions {
  double theta = 10000;      ///< base of the wavelengths
  std::int64_t offset = 0;   ///< position of row 0, such as the number of keys in a cache
  bool interleaved = false;  ///< false pairs column i with i + D/2 (GPT-NeoX, Hugging Face), true 2i with 2i + 1 (the paper)
};

namespace detail {
/// The check functions return the shape of the result.
Shape check_sinusoidal_positions(std::int64_t length, std::int64_t width);
void sinusoidal_positions(std::int64_t length, std::int64_t width, float* y);
// A sine and a cosine cost about as much as 60 multiply-adds.
inline constexpr double kSinCosCost = 60;

/// Throws CONFIG unless theta is a normal number above 0 and offset within ±2⁵³.
void check_rotary_options(std::string_view op, const RotaryOptions& options, std::string_view theta = "theta", std::string_view offset = "offset");
/// Returns theta^(-2i / D) for each pair i of columns.
/// theta^(-2i / width), i < count
void frequencies(double theta, std::size_t width, std::size_t count, double* to);

/// Column pairs of a head of width D.
struct RotaryPairs {
  std::size_t pairs, step, distance;  ///< number of pairs, step between first columns, distance to the second column

  RotaryPairs(const RotaryOptions& options, std::size_t D)
      : pairs(D / 2), step(options.interleaved ? 2 : 1), distance(options.interleaved ? 1 : D / 2) {}
  /// Rotates one head in float64; x and y may be the same.
  void turn(const float* x, const SinCos* turns, float* y) const {
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::size_t first = i * step, second = first + distance;
      const double a = x[first], b = x[second];
      y[first] = static_cast<float>(a * turns[i].cos - b * turns[i].sin);
      y[second] = static_cast<float>(b * turns[i].cos + a * turns[i].sin);
    }
  }
};

Shape check_rotary(std::string_view op, std::string_view argument, const TensorView& x, const RotaryOptions& options);
/// Rotates by direction · angle; -1 inverts the rotation.
void apply_rotary(const TensorView& x, const RotaryOptions& options, double direction, float* y);
Shape check_alibi_bias(std::int64_t num_heads, std::int64_t length, std::int64_t key_length);
void alibi_bias(std::int64_t num_heads, std::int64_t length, std::int64_t key_length, float* y);
}  // namespace detail

/// Returns the sinusoidal position table: PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i + 1) = cos(pos /
/// 10000^(2i / width)).
///
/// @param length  rows
/// @param width   columns; if it is odd, the last column is a sine
/// @return (length,width), to be added to embeddings
/// @throws ARGUMENT if length or width is negative
/// @throws MEMORY if the result exceeds the memory limit
/// @see Vaswani et al. 2017, section 3.5
///
/// @code
/// std::cout << attn::sinusoidal_positions(1, 4);  // {{ 0.,  1.,  0.,  1.}}
/// @endcode
template <std::size_t N = 2>
TensorOf<N> sinusoidal_positions(std::int64_t length, std::int64_t width) {
  auto y = detail::empty<N>(detail::check_sinusoidal_positions(length, width));
  detail::sinusoidal_positions(length, width, y.data());
  return y;
}

/// Applies rotary position embeddings (RoPE): rotates each pair of columns of row l by the angle (offset + l) ·
/// theta^(-2i / D), i < D/2. A product of a query and a key then depends only on the distance of their positions.
/// Angles are float64: up to positions of 10⁷ their error is far below that of float32. Angles beyond 2⁵⁴ (possible
/// only if theta is below 1) give NaN.
///
/// @param x        (..,L,D), D even: queries or keys of one head or of several
/// @param options  theta, the position of row 0, and how columns are paired
/// @return the shape of x
/// @throws SHAPE if the rank is below 2 or D is odd
/// @throws CONFIG unless theta is finite and above 0 and offset within ±2⁵³
/// @throws MEMORY if the result exceeds the memory limit
/// @see RoFormer, Su et al. 2021
///
/// @code
/// xt::xtensor<float, 2> x{{1, 0}, {1, 0}};
/// std::cout << attn::apply_rotary(x)(1, 1);  // 0.841471
/// @endcode
template <TensorLike X>
auto apply_rotary(const X& x, const RotaryOptions& options = {}) {
  const detail::Input view(x, "apply_rotary", "x");
  auto y = detail::empty<kRankOf<X>>(detail::check_rotary("apply_rotary", "x", view, options));
  detail::apply_rotary(view, options, 1, y.data());
  return y;
}

/// Returns the ALiBi bias -slope(h) · |i - j|, to be used as an additive mask. Slopes are 2^(-8 (h + 1) / H) if H is
/// a power of two; otherwise those of the next lower power of two P, followed by every other slope of 2P, starting with
/// the first.
///
/// @param num_heads   H, 1 or more
/// @param length      L
/// @param key_length  S, default L
/// @return (1,H,L,S)
/// @throws CONFIG if num_heads is below 1
/// @throws ARGUMENT if a length is negative
/// @throws MEMORY if the result exceeds the memory limit
/// @see Press et al. 2022, get_slopes
///
/// @code
/// std::cout << attn::alibi_bias(8, 1, 3)(0, 0, 0, 2);  // -1
/// @endcode
template <std::size_t N = 4>
TensorOf<N> alibi_bias(std::int64_t num_heads, std::int64_t length, std::optional<std::int64_t> key_length = std::nullopt) {
  const std::int64_t keys = key_length.value_or(length);
  auto y = detail::empty<N>(detail::check_alibi_bias(num_heads, length, keys));
  detail::alibi_bias(num_heads, length, keys, y.data());
  return y;
}

}  // namespace attn
