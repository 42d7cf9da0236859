#pragma once

#include <bit>
#include <cstdint>

namespace attn {

constexpr float float_from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) {  // zero and subnormals: fraction · 2⁻²⁴
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// Rounds to nearest, ties to even. NaN stays NaN; too large numbers become infinite.
constexpr std::uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
  std::uint32_t half = 0x7c00;
  if (exponent == 0xff) {
    if (fraction != 0) half = 0x7e00;
  } else if (exponent < 143) {  // below 2¹⁶
    // Normal numbers lose 13 bits of their fraction, subnormals more, including the leading 1.
    const bool normal = exponent > 112;
    const std::uint32_t shift = normal ? 13 : exponent > 101 ? 126 - exponent : 25, all = normal ? fraction : fraction | 0x800000;
    const std::uint32_t rest = all & ((1U << shift) - 1), middle = 1U << (shift - 1);
    half = (normal ? (exponent - 112) << 10 : 0) + (all >> shift);
    if (rest > middle || (rest == middle && (half & 1) != 0)) ++half;
  }
  return static_cast<std::uint16_t>(sign | half);
}

constexpr float float_from_bfloat16(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

}  // namespace attn
