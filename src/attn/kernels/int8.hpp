#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "attn/kernels/gemm.hpp"
#include "attn/kernels/int8_dot.hpp"
#include "attn/kernels/rows.hpp"
#include "attn/kernels/simd.hpp"

// q, z and s are from quantize_row, Q and t from quantize_weights:
// C[i][j] = (Σₖ (q(A)[i][k] - z[i]) · Q[j][k]) · s[i] · t[j] + b[j]
namespace attn::kernels {

template <class Arch>
inline constexpr std::size_t kInt8Block = kInt8Batches * kLanes<Arch>;

/// Calls f(block, n) with n values of x, padded with zeros to kInt8Block<Arch>.
template <class Arch, class F>
inline void for_blocks(const float* x, std::size_t k, F f) {
  float filled[kInt8Block<Arch>] = {};
  // Inlined once: in WebAssembly a second copy for partial blocks was half of the code of the int8 kernels.
  for (std::size_t first = 0; first < k; first += kInt8Block<Arch>) {
    const std::size_t n = k - first < kInt8Block<Arch> ? k - first : kInt8Block<Arch>;
    const bool full = n == kInt8Block<Arch>;
    for (std::size_t i = 0; i < n && !full; ++i) filled[i] = x[first + i];
    f(full ? x + first : static_cast<const float*>(filled), n);
  }
}

/// Computes min(0, x ...) and max(0, x ...). Returns whether all values are finite.
template <class Arch>
[[gnu::noinline]] bool range_of(const float* x, std::size_t k, float* low, float* high) {
  using F = Batch<Arch>;
  constexpr std::size_t kChains = 4;
  F lows[kChains], highs[kChains];
  auto numbers = F(0.0F) == F(0.0F);
  for (std::size_t c = 0; c < kChains; ++c) lows[c] = highs[c] = F(0.0F);
  for_blocks<Arch>(x, k, [&](const float* block, std::size_t) {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kInt8Batches; ++v) {
      const F value = F::load_unaligned(block + v * kLanes<Arch>);
      lows[v % kChains] = min_ignoring_nan<Arch>(value, lows[v % kChains]);
      highs[v % kChains] = max_ignoring_nan<Arch>(value, highs[v % kChains]);
      numbers = numbers & (value == value);
    }
  });
  for (std::size_t c = 1; c < kChains; ++c) {
    lows[0] = min_ignoring_nan<Arch>(lows[c], lows[0]);
    highs[0] = max_ignoring_nan<Arch>(highs[c], highs[0]);
  }
  *low = xsimd::reduce_min(lows[0]);
  *high = xsimd::reduce_max(highs[0]);
  constexpr float kMost = std::numeric_limits<float>::max();
  return xsimd::all(numbers) && *low >= -kMost && *high <= kMost;
}

/// Padding in a word is arbitrary, because its weights are 0.
template <class Dot, class Arch>
void quantize_row(const float* x, std::size_t k, std::int32_t* words, std::size_t step_of_words, float* scale, std::int32_t* correction) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  using Number = typename Dot::Number;
  float low = 0, high = 0;
  const bool finite = range_of<Arch>(x, k, &low, &high);
  const float step = high / 255 - low / 255;
  if (!finite || step == 0) {
    for (std::size_t word = 0; word < int8_words(Dot::kGroup, k); ++word) words[word * step_of_words] = 0;
    *scale = finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    *correction = 0;
    return;
  }
  // Rounds halves to even: adding 1.5 · 2²³ leaves the integer in the low bits.
  const F steps(step), inverses(1 / step), magic(12582912.0F);
  const auto whole_of = [&](const F& sum) { return as_ints<Arch>(sum) - as_ints<Arch>(magic); };
  std::int32_t lane[kLanes<Arch>];
  whole_of(divide<Arch>(F(-low), steps) + magic).store_unaligned(lane);
  const std::int32_t zero_point = lane[0] < 255 ? lane[0] : 255;
  const I zero_points(zero_point);
  *scale = step;
  *correction = Dot::correction(zero_point);
  // Quotients are at most 255, so x · (1 / step) is off by less than 2⁻¹⁴ and rounds alike unless it is that close to a
  // half. If step is subnormal, 1 / step may be infinite.
  const bool may_multiply = step >= std::numeric_limits<float>::min();
  const F nearly_half(0.5F - 0x1p-13F);
  for_blocks<Arch>(x, k, [&](const float* block, std::size_t n) {
    I q[kInt8Batches];
    F furthest(0.0F);
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kInt8Batches; ++v) {
      const F quotient = F::load_unaligned(block + v * kLanes<Arch>) * inverses, sum = quotient + magic;
      furthest = max_ignoring_nan<Arch>(xsimd::abs(quotient - (sum - magic)), furthest);
      q[v] = whole_of(sum) + zero_points;
    }
    if (!may_multiply || xsimd::any(furthest > nearly_half))
      for (std::size_t v = 0; v < kInt8Batches; ++v)
        q[v] = whole_of(divide<Arch>(F::load_unaligned(block + v * kLanes<Arch>), steps) + magic) + zero_points;
    alignas(64) Number narrow[kInt8Block<Arch>];
    store_narrow<Arch>(q, Dot::shift(zero_point), narrow);
    const std::size_t count = n == kInt8Block<Arch> ? kInt8Block<Arch> / Dot::kGroup : int8_words(Dot::kGroup, n);
    for (std::size_t word = 0; word < count; ++word, words += step_of_words) std::memcpy(words, narrow + word * Dot::kGroup, sizeof *words);
  });
}

template <class Arch>
std::int32_t quantize_weights(const float* w, std::size_t k, std::int8_t* q, float* scale) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  float low = 0, high = 0;
  range_of<Arch>(w, k, &low, &high);
  *scale = (high < -low ? -low : high) / 127;
  if (*scale == 0) {
    for (std::size_t p = 0; p < k; ++p) q[p] = 0;
    return 0;
  }
  // A tiny scale may be rounded down so far that a quotient exceeds 127.
  constexpr std::int32_t kShift = 128;
  const F steps(*scale), magic(12582912.0F), most(127.0F);
  I sum(0);
  for_blocks<Arch>(w, k, [&](const float* block, std::size_t n) {
    I shifted[kInt8Batches];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kInt8Batches; ++v) {
      const F quotient = divide<Arch>(F::load_unaligned(block + v * kLanes<Arch>), steps);
      const I whole = as_ints<Arch>(max_ignoring_nan<Arch>(min_ignoring_nan<Arch>(quotient, most), -most) + magic) - as_ints<Arch>(magic);
      sum += whole;
      shifted[v] = whole + I(kShift);
    }
    alignas(64) std::int8_t narrow[kInt8Block<Arch>];
    store_narrow<Arch>(shifted, kShift, narrow);
    std::memcpy(q, narrow, n);
    q += n;
  });
  std::int32_t lane[kLanes<Arch>], total = 0;
  sum.store_unaligned(lane);
  for (const std::int32_t each : lane) total += each;
  return total;
}

// xsimd cannot load int8 as float32; compilers vectorize this.
template <class Arch>
void dequantize_row(const std::int8_t* q, float scale, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = scale * static_cast<float>(q[i]);
}

struct Int8TileArguments {
  const std::int32_t* a;
  const float* scales;
  const std::int32_t* corrections;
  const std::int8_t* weights;
  const float* weight_scales;
  const std::int32_t* weight_sums;
  const float* bias;
  float* c;
  std::size_t ldc;
  std::size_t words;                ///< per row of A
  std::uintptr_t prefetch_address;  ///< as in TileArguments
  std::uintptr_t prefetch_bytes;
};

/// A product may need its own register before it is added, as in float32 without fused multiply-add.
template <class Arch>
inline constexpr std::size_t kInt8Rows = Tile<Reproducible<Arch>>::kMr;

template <class Dot, class Arch, std::size_t Rows>
void int8_tile(const Int8TileArguments& t) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  constexpr std::size_t kNr = Tile<Arch>::kNr, kStep = kLanes<Arch> * Dot::kGroup;  // kStep: bytes of weights per batch of columns
  I sum[Rows][2];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i) sum[i][0] = sum[i][1] = I(0);
  const std::int8_t* weights = t.weights;
  const std::int32_t* a = t.a;
  std::uintptr_t prefetch_address = t.prefetch_address;
#pragma GCC unroll 1
  for (std::size_t p = 0; p < t.words; ++p, a += Rows, weights += 2 * kStep, prefetch_address += t.prefetch_bytes) {
    prefetch<Arch>(prefetch_address);
    const I left = Dot::load(weights), right = Dot::load(weights + kStep);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Rows; ++i) {
      const I x(a[i]);
      sum[i][0] = Dot::add(sum[i][0], left, x);
      sum[i][1] = Dot::add(sum[i][1], right, x);
    }
  }
  // Stored first: in one loop with the code below, g++ would keep the sums in memory.
  alignas(64) std::int32_t exact[Rows * kNr];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) sum[i][v].store_unaligned(exact + i * kNr + v * kLanes<Arch>);
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < kNr; j += kLanes<Arch>) {
      const I product = subtract_scaled<Arch>(I::load_unaligned(exact + i * kNr + j), I::load_unaligned(t.weight_sums + j), t.corrections[i]);
      (xsimd::to_float(product) * F(t.scales[i]) * F::load_unaligned(t.weight_scales + j) + F::load_unaligned(t.bias + j))
          .store_unaligned(t.c + i * t.ldc + j);
    }
}

template <class Dot, class Arch>
void gemm_int8(const GemmInt8& g) {
  constexpr std::size_t kMr = kInt8Rows<Arch>, kNr = Tile<Arch>::kNr;
  using TileOf = void (*)(const Int8TileArguments&);
  static constexpr auto kTiles = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<TileOf, kMr>{&int8_tile<Dot, Arch, I + 1>...};
  }(std::make_index_sequence<kMr>{});
  if (g.m == 0) return;
  const std::size_t words = int8_words(Dot::kGroup, g.k);
  const auto [tiles, height, taller] = RowTiles(g.m, kMr);
  for (std::size_t j = 0; j < g.n; j += kNr) {
    const std::size_t columns = g.n - j < kNr ? g.n - j : kNr;
    alignas(64) float scales[kNr] = {}, bias[kNr] = {}, result[kMr * kNr];
    alignas(64) std::int32_t sums[kNr] = {};
    for (std::size_t i = 0; i < columns; ++i) {
      scales[i] = g.weight_scales[j + i];
      sums[i] = g.weight_sums[j + i];
      bias[i] = g.bias != nullptr ? g.bias[j + i] : 0.0F;
    }
    const std::size_t panel = int8_panel_size(kNr, Dot::kGroup, g.k);
    Int8TileArguments t{.a = g.a,
                        .scales = g.scales,
                        .corrections = g.corrections,
                        .weights = g.panels + j / kNr * panel,
                        .weight_scales = scales,
                        .weight_sums = sums,
                        .bias = bias,
                        .c = g.c + j,
                        .ldc = g.ldc,
                        .words = words,
                        .prefetch_address = reinterpret_cast<std::uintptr_t>(g.panels + (j / kNr + (j + columns < g.n ? 1 : 0)) * panel),
                        .prefetch_bytes = (kNr * Dot::kGroup + tiles - 1) / tiles};
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      const std::size_t rows = tile < taller ? height + 1 : height;
      if (columns == kNr) {
        kTiles[rows - 1](t);
      } else {
        Int8TileArguments whole = t;
        whole.c = result;
        whole.ldc = kNr;
        kTiles[rows - 1](whole);
        for (std::size_t i = 0; i < rows; ++i)
          for (std::size_t column = 0; column < columns; ++column) t.c[i * t.ldc + column] = result[i * kNr + column];
      }
      t.prefetch_address += words * t.prefetch_bytes;
      t.a += rows * words;
      t.scales += rows;
      t.corrections += rows;
      t.c += rows * t.ldc;
    }
  }
}

/// Integers may wrap around. A group of 2 takes two instructions, so its factors differ and are opaque: compilers would
/// merge equal products and hoist known ones.
template <class Dot, class Arch>
std::size_t int8_multiply_adds(std::size_t count) {
  using I = Ints<Arch>;
  constexpr bool kPairs = Dot::kGroup == 2;
  constexpr std::size_t kWeights = kPairs ? 2 : 1, kRows = kPairs ? 4 : 12, kPerRound = kWeights * kRows * kLanes<Arch> * Dot::kGroup;
  volatile std::int32_t seed = 0x01ff0203;
  // A single load, because Binaryen merges several loads of a volatile.
  const std::int32_t number = seed;
  const auto distinct = [number](std::size_t i) { return I(number + static_cast<std::int32_t>(i)); };
  I weights[kWeights], x[kRows], sum[kWeights][kRows];
  for (std::size_t i = 0; i < kWeights; ++i) weights[i] = distinct(kRows + i);
  for (std::size_t i = 0; i < kRows; ++i) x[i] = distinct(i);
  for (std::size_t i = 0; i < kWeights * kRows; ++i) sum[i / kRows][i % kRows] = distinct(i);
  const std::size_t rounds = (count + kPerRound - 1) / kPerRound;
#pragma GCC unroll 1
  for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < kWeights; ++j) {
#pragma GCC unroll 12
      for (std::size_t i = 0; i < kRows; ++i) sum[j][i] = Dot::add(sum[j][i], weights[j], x[kPairs ? i : 0]);
      if constexpr (kPairs) weights[j] = opaque<Arch>(weights[j]);
    }
  }
  I all = sum[0][0];
  for (std::size_t i = 1; i < kWeights * kRows; ++i) all = all ^ sum[i / kRows][i % kRows];
  std::int32_t lane[kLanes<Arch>];
  all.store_unaligned(lane);
  seed = lane[0];
  return rounds * kPerRound;
}

/// Products multiplies: Dot, or another type with the same instruction.
template <class Dot, class Arch, class Products = Dot>
constexpr Int8Kernels int8_kernels() {
  return {.name = Dot::kName,
          .mr = kInt8Rows<Arch>,
          .group = Dot::kGroup,
          .quantize_row = &quantize_row<Dot, Arch>,
          .gemm = &gemm_int8<Products, Arch>,
          .multiply_adds = &int8_multiply_adds<Products, Arch>};
}

}  // namespace attn::kernels
