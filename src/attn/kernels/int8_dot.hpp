#pragma once

#include <cstddef>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "attn/kernels/simd.hpp"

#if defined(__wasm__)
#include <wasm_simd128.h>
#elif defined(__SSE4_2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Products of int8, which xsimd lacks; no instruction saturates. A batch has a 32-bit lane per column, which holds a
// group of k: two 16-bit or four 8-bit numbers.
namespace attn::kernels {

#if defined(__aarch64__) && !XSIMD_WITH_EMULATED
/// Returns one of x's equal lanes: a 4-byte load is cheaper than one that fills all lanes.
template <class Arch>
int32x2_t word_of(const Ints<Arch>& x) {
  return vreinterpret_s32_u64(vcreate_u64(static_cast<std::uint32_t>(vgetq_lane_s32(x, 0))));
}
#endif

/// Here and in clamp_to_byte g++ does not inline xsimd's operations on NEON.
template <class Arch>
Ints<Arch> subtract_scaled(const Ints<Arch>& sum, const Ints<Arch>& x, std::int32_t factor) {
#if defined(__aarch64__) && !XSIMD_WITH_EMULATED
  return vmlsq_n_s32(sum, x, factor);
#else
  return sum - Ints<Arch>(factor) * x;
#endif
}

template <class Arch>
Ints<Arch> clamp_to_byte(const Ints<Arch>& q, const Ints<Arch>& shift) {
  const Ints<Arch> none(0), most(255);
#if defined(__aarch64__) && !XSIMD_WITH_EMULATED
  return vsubq_s32(vminq_s32(vmaxq_s32(q, none), most), shift);
#else
  return xsimd::min(xsimd::max(q, none), most) - shift;
#endif
}

/// Batches that fill one batch of bytes.
inline constexpr std::size_t kInt8Batches = 4;

template <class Arch, class Number>
void store_narrow(const Ints<Arch> (&q)[kInt8Batches], std::int32_t shift, Number* to) {
#if defined(__wasm__)
  // LLVM would split the vectors of the generic code.
  const v128_t low = wasm_i16x8_narrow_i32x4(q[0], q[1]), high = wasm_i16x8_narrow_i32x4(q[2], q[3]);
  if constexpr (sizeof(Number) == 1) {
    wasm_v128_store(to, wasm_i8x16_sub(wasm_u8x16_narrow_i16x8(low, high), wasm_i8x16_splat(static_cast<std::int8_t>(shift))));
  } else {
    const v128_t none = wasm_i16x8_splat(0), most = wasm_i16x8_splat(255), shifts = wasm_i16x8_splat(static_cast<std::int16_t>(shift));
    wasm_v128_store(to, wasm_i16x8_sub(wasm_i16x8_min(wasm_i16x8_max(low, none), most), shifts));
    wasm_v128_store(to + 8, wasm_i16x8_sub(wasm_i16x8_min(wasm_i16x8_max(high, none), most), shifts));
  }
#else
  constexpr std::size_t kStep = kLanes<Arch>;
  alignas(64) std::int32_t wide[kInt8Batches * kStep];
#pragma GCC unroll 16
  for (std::size_t v = 0; v < kInt8Batches; ++v) clamp_to_byte<Arch>(q[v], Ints<Arch>(shift)).store_aligned(wide + v * kStep);
  for (std::size_t i = 0; i < kInt8Batches * kStep; ++i) to[i] = static_cast<Number>(wide[i]);
#endif
}

/// Returns numbers unknown to the compiler: x, or x + x if inline assembly accepts no such registers.
template <class Arch>
inline Ints<Arch> opaque(const Ints<Arch>& x) {
#if defined(__SSE4_2__)
  auto value = static_cast<typename Ints<Arch>::register_type>(x);
  __asm__ volatile("" : "+v"(value));
  return value;
#else
  return x + x;
#endif
}

/// 16-bit numbers: activations are q - z, and weights are widened when they are loaded.
template <class Arch>
struct Pairs {
  using Number = std::int16_t;
  static constexpr const char* kName = "16-bit pairs";
  static constexpr std::size_t kGroup = 2;
  /// shift() is subtracted from q before it is stored; correction() · Σ weights is subtracted from the product.
  static std::int32_t shift(std::int32_t zero_point) { return zero_point; }
  static std::int32_t correction(std::int32_t) { return 0; }

#if defined(__wasm__)
  static Ints<Arch> load(const std::int8_t* weights) { return wasm_i16x8_load8x8(weights); }
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(weights, x));
  }
#elif defined(__AVX512BW__)
  static Ints<Arch> load(const std::int8_t* weights) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights))); }
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(weights, x));
  }
#elif defined(__AVX2__)
  static Ints<Arch> load(const std::int8_t* weights) { return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights))); }
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(weights, x));
  }
#elif defined(__SSE4_2__)
  static Ints<Arch> load(const std::int8_t* weights) { return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights))); }
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return _mm_add_epi32(sum, _mm_madd_epi16(weights, x));
  }
#elif defined(__aarch64__) && !XSIMD_WITH_EMULATED
  // Even k first, then odd ones: saves a pairwise addition.
  static Ints<Arch> load(const std::int8_t* weights) {
    return vreinterpretq_s32_s16(vmovl_s8(vtbl1_s8(vld1_s8(weights), vcreate_s8(0x0705030106040200U))));
  }
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    const int16x4_t pair = vreinterpret_s16_s32(word_of<Arch>(x));
    const int16x8_t w = vreinterpretq_s16_s32(weights);
    return vmlal_high_lane_s16(vmlal_lane_s16(sum, vget_low_s16(w), pair, 0), w, pair, 1);
  }
#else
  static Ints<Arch> load(const std::int8_t* weights) {
    std::int32_t lane[kLanes<Arch>];
    for (std::size_t i = 0; i < kLanes<Arch>; ++i) lane[i] = weights[2 * i] + (weights[2 * i + 1] * (1 << 16));
    return Ints<Arch>::load_unaligned(lane);
  }
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    std::int32_t s[kLanes<Arch>], w[kLanes<Arch>], a[kLanes<Arch>];
    sum.store_unaligned(s);
    weights.store_unaligned(w);
    x.store_unaligned(a);
    const auto low = [](std::int32_t pair) { return static_cast<std::int32_t>(static_cast<std::int16_t>(pair)); };
    for (std::size_t i = 0; i < kLanes<Arch>; ++i) {
      const std::int32_t w0 = low(w[i]), a0 = low(a[i]);
      s[i] += w0 * a0 + (w[i] - w0) / (1 << 16) * (a[i] >> 16);
    }
    return Ints<Arch>::load_unaligned(s);
  }
#endif
};

/// 8-bit numbers: activations are q, unsigned.
template <class Arch>
struct Unsigned4 {
  using Number = std::uint8_t;
#if defined(__wasm__)
  static constexpr const char* kName = "relaxed dot, unsigned";
#else
  static constexpr const char* kName = "vpdpbusd";
#endif
  static constexpr std::size_t kGroup = 4;
  static std::int32_t shift(std::int32_t) { return 0; }
  static std::int32_t correction(std::int32_t zero_point) { return zero_point; }
  static Ints<Arch> load(const std::int8_t* weights) { return Ints<Arch>::load_unaligned(reinterpret_cast<const std::int32_t*>(weights)); }
#if defined(__wasm_relaxed_simd__)
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(weights, x, sum);
  }
#elif defined(__AVX512VNNI__)
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) { return _mm512_dpbusd_epi32(sum, x, weights); }
#elif defined(__AVXVNNI__)
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) { return _mm256_dpbusd_avx_epi32(sum, x, weights); }
#endif
};

/// 8-bit numbers: activations are q - 128.
template <class Arch>
struct Signed4 {
  using Number = std::int8_t;
#if defined(__wasm__)
  static constexpr const char* kName = "relaxed dot, signed";
#else
  static constexpr const char* kName = "sdot";
#endif
  static constexpr std::size_t kGroup = 4;
  static std::int32_t shift(std::int32_t) { return 128; }
  static std::int32_t correction(std::int32_t zero_point) { return zero_point - 128; }
  static Ints<Arch> load(const std::int8_t* weights) { return Ints<Arch>::load_unaligned(reinterpret_cast<const std::int32_t*>(weights)); }
#if defined(__wasm_relaxed_simd__)
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(weights, x, sum);
  }
#elif defined(__ARM_FEATURE_DOTPROD)
  static Ints<Arch> add(const Ints<Arch>& sum, const Ints<Arch>& weights, const Ints<Arch>& x) {
    return vdotq_lane_s32(sum, vreinterpretq_s8_s32(weights), vreinterpret_s8_s32(word_of<Arch>(x)), 0);
  }
#endif
};

#if defined(__wasm_relaxed_simd__)
/// Checks this machine: the engine may choose how to treat activations above 127, and whether sums of two products
/// saturate.
template <class Dot>
bool is_exact() {
  using Number = typename Dot::Number;
  constexpr std::int8_t kWeights[16] = {127, 127, 127, 127, -128, -128, -128, -128, 127, -128, -128, 127, -127, 1, 127, -128};
  constexpr int kActivations[2][4] = {{255, 255, 255, 255}, {128, 128, 0, 127}};
  for (const auto& activations : kActivations) {
    std::int8_t weights[16], x[16];
    std::int32_t sum[4];
    for (std::size_t i = 0; i < 16; ++i) {
      weights[i] = static_cast<volatile const std::int8_t&>(kWeights[i]);  // so that the engine multiplies, not the compiler
      x[i] = static_cast<std::int8_t>(activations[i % 4]);
    }
    Dot::add(Ints<xsimd::wasm>(0), Dot::load(weights), Dot::load(x)).store_unaligned(sum);
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::int32_t expected = 0;
      for (std::size_t i = 4 * lane; i < 4 * lane + 4; ++i) expected += weights[i] * static_cast<std::int32_t>(static_cast<Number>(x[i]));
      if (sum[lane] != expected) return false;
    }
  }
  return true;
}
#endif

}  // namespace attn::kernels
