#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#if defined(__wasm_relaxed_simd__)
#include <wasm_simd128.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Additions to xsimd. All are templates over the architecture: the linker would merge the copies of a plain inline
// function into one that some machines cannot run.
namespace attn::kernels {

/// Gives the same bits on every architecture: no fused multiply-adds, sums in 16 lanes.
template <class Arch>
struct Reproducible {};

template <class Arch>
struct BaseArch {
  using type = Arch;
};
template <class Arch>
struct BaseArch<Reproducible<Arch>> {
  using type = Arch;
};

template <class Arch>
using Batch = xsimd::batch<float, typename BaseArch<Arch>::type>;
template <class Arch>
using Ints = xsimd::batch<std::int32_t, typename BaseArch<Arch>::type>;

template <class Arch>
inline constexpr std::size_t kLanes = Batch<Arch>::size;

/// Batches that accumulate a sum.
template <class Arch>
inline constexpr std::size_t kAccumulators = 1;
template <class Arch>
inline constexpr std::size_t kAccumulators<Reproducible<Arch>> = 16 / kLanes<Arch>;

/// Whether the architecture fuses multiply_add.
#if defined(__wasm_relaxed_simd__) || defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif

template <class Arch>
inline constexpr bool kIsFused = kFused && std::is_same_v<Arch, typename BaseArch<Arch>::type>;

/// a · b + c, rounded once if kIsFused. xsimd's fma on wasm multiplies and adds, which is right for plain simd128 only.
template <class Arch>
inline Batch<Arch> multiply_add(const Batch<Arch>& a, const Batch<Arch>& b, const Batch<Arch>& c) {
  if constexpr (!std::is_same_v<Arch, typename BaseArch<Arch>::type>) return a * b + c;
#if defined(__wasm_relaxed_simd__)
  return Batch<Arch>(wasm_f32x4_relaxed_madd(a, b, c));
#else
  return xsimd::fma(a, b, c);
#endif
}

/// x / y, rounded once. On NEON xsimd multiplies by an approximate reciprocal.
template <class Arch>
inline Batch<Arch> divide(const Batch<Arch>& x, const Batch<Arch>& y) {
#if defined(__aarch64__) && !XSIMD_WITH_EMULATED
  return Batch<Arch>(vdivq_f32(x, y));
#else
  return x / y;
#endif
}

/// On NEON g++ does not inline xsimd::bitwise_cast.
template <class Arch>
inline Batch<Arch> as_floats(const Ints<Arch>& x) {
#if defined(__aarch64__) && !XSIMD_WITH_EMULATED
  return Batch<Arch>(vreinterpretq_f32_s32(x));
#else
  return xsimd::bitwise_cast<float>(x);
#endif
}
template <class Arch>
inline Ints<Arch> as_ints(const Batch<Arch>& x) {
#if defined(__aarch64__) && !XSIMD_WITH_EMULATED
  return Ints<Arch>(vreinterpretq_s32_f32(x));
#else
  return xsimd::bitwise_cast<std::int32_t>(x);
#endif
}

/// max(x, y), or y if x is NaN: one instruction (pmax) on wasm.
template <class Arch>
inline Batch<Arch> max_ignoring_nan(const Batch<Arch>& x, const Batch<Arch>& y) {
  return xsimd::select(y < x, x, y);
}

/// min(x, y), or y if x is NaN.
template <class Arch>
inline Batch<Arch> min_ignoring_nan(const Batch<Arch>& x, const Batch<Arch>& y) {
  return xsimd::select(x < y, x, y);
}

template <class Arch, std::size_t Count>
inline float sum_pairwise(float* lane) {
  for (std::size_t width = Count / 2; width > 0; width /= 2)
    for (std::size_t i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
}

/// Pairwise. xsimd::reduce_add uses a different order on wasm than on the emulated architecture.
template <class Arch>
inline float sum_of_lanes(const Batch<Arch>& x) {
  float lane[kLanes<Arch>];
  x.store_unaligned(lane);
  return sum_pairwise<Arch, kLanes<Arch>>(lane);
}

template <class Arch>
inline float max_of_lanes(const Batch<Arch>& x) {
  float lane[kLanes<Arch>];
  x.store_unaligned(lane);
  float most = lane[0];
  for (std::size_t i = 1; i < kLanes<Arch>; ++i) most = most < lane[i] ? lane[i] : most;
  return most;
}

template <class Arch>
inline Batch<Arch> load_partial(const float* p, std::size_t count, float fill) {
  float lane[kLanes<Arch>];
  for (std::size_t i = 0; i < kLanes<Arch>; ++i) lane[i] = i < count ? p[i] : fill;
  return Batch<Arch>::load_unaligned(lane);
}

template <class Arch>
inline void store_partial(const Batch<Arch>& x, float* p, std::size_t count) {
  float lane[kLanes<Arch>];
  x.store_unaligned(lane);
  for (std::size_t i = 0; i < count; ++i) p[i] = lane[i];
}

#if defined(__wasm__)
#define ATTN_TAIL [[gnu::noinline]]
#else
#define ATTN_TAIL inline
#endif

/// Calls in WebAssembly: inlined tails would be half of the code of the elementwise kernels.
template <class Arch>
ATTN_TAIL Batch<Arch> load_tail(const float* p, std::size_t count) {
  return load_partial<Arch>(p, count, 0);
}
template <class Arch>
ATTN_TAIL void store_tail(const Batch<Arch>& x, float* p, std::size_t count) {
  store_partial<Arch>(x, p, count);
}

/// y[i] = f(x[i], ...), y may be an input. The tail is padded with zeros.
template <class Arch, class F, class... X>
inline void map_row(float* y, std::size_t n, F f, const X*... x) {
  std::size_t i = 0;
  for (; i + kLanes<Arch> <= n; i += kLanes<Arch>) f(Batch<Arch>::load_unaligned(x + i)...).store_unaligned(y + i);
  if (i < n) store_tail<Arch>(f(load_tail<Arch>(x + i, n - i)...), y + i, n - i);
}

/// For an f so large that a second copy for the tail would cost more than a check per batch.
template <class Arch, class F>
inline void map_row_compactly(const float* x, float* y, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; i += kLanes<Arch>) {
    const bool whole = n - i >= kLanes<Arch>;
    const Batch<Arch> value = f(whole ? Batch<Arch>::load_unaligned(x + i) : load_partial<Arch>(x + i, n - i, 0));
    if (whole)
      value.store_unaligned(y + i);
    else
      store_partial<Arch>(value, y + i, n - i);
  }
}

/// Σ sum(first, end) over blocks: a lane that has reached 2²⁴ no longer changes when terms ≤ 1 are added.
template <class Sum>
inline float sum_of_blocks(std::size_t n, Sum sum) {
  constexpr std::size_t kBlock = 1U << 16U;
  double total = 0;
  for (std::size_t first = 0; first < n; first += kBlock) total += static_cast<double>(sum(first, n - first < kBlock ? n : first + kBlock));
  return static_cast<float>(total);
}

template <class Arch, class F, class... X>
inline float sum_of_batches(std::size_t i, std::size_t end, F f, const X*... x) {
  constexpr std::size_t kStep = kLanes<Arch>, kAll = kAccumulators<Arch> * kStep;
  Batch<Arch> sum[kAccumulators<Arch>];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < kAccumulators<Arch>; ++v) sum[v] = Batch<Arch>(0.0F);
  for (; i + kAll <= end; i += kAll)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kAccumulators<Arch>; ++v) sum[v] += f(Batch<Arch>::load_unaligned(x + i + v * kStep)...);
  float lane[kAll], term[kStep];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < kAccumulators<Arch>; ++v) sum[v].store_unaligned(lane + v * kStep);
#pragma GCC unroll 1
  for (float* to = lane; i < end; i += kStep, to += kStep) {
    const std::size_t count = end - i < kStep ? end - i : kStep;
    f(load_partial<Arch>(x + i, count, 0)...).store_unaligned(term);
#pragma GCC unroll 1
    for (std::size_t l = 0; l < count; ++l) to[l] += term[l];
  }
  return sum_pairwise<Arch, kAll>(lane);
}

/// Lane l of kAccumulators batches adds the terms l, l + lanes, l + 2 · lanes, ... of a block.
template <class Arch, class F, class... X>
inline float sum_row(std::size_t n, F f, const X*... x) {
  return sum_of_blocks(n, [&](std::size_t i, std::size_t end) {
    if constexpr (kAccumulators<Arch> > 1) return sum_of_batches<Arch>(i, end, f, x...);
    Batch<Arch> sum(0.0F);
    for (; i + kLanes<Arch> <= end; i += kLanes<Arch>) sum += f(Batch<Arch>::load_unaligned(x + i)...);
    if (i < end) {
      float term[kLanes<Arch>];
      f(load_partial<Arch>(x + i, end - i, 0)...).store_unaligned(term);
      sum += load_partial<Arch>(term, end - i, 0);
    }
    return sum_of_lanes<Arch>(sum);
  });
}

}  // namespace attn::kernels
