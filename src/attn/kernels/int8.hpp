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

// C[i][j] = (Σₖ (q(A)[i][k] - z[i]) · Q[j][k]) · s[i] · t[j] + b[j], the sum an integer, exact
//
// q, z and s are those of quantize_row, Q and t of quantize_weights. The sum is the same in any order, so every architecture has the
// same bits; what follows is rounded at each step.
namespace attn::kernels {

template <class Arch>
inline constexpr std::size_t kInt8Block = kInt8Batches * kLanes<Arch>;

/// f(block, n) for x in blocks of kInt8Block<Arch>, of which n count; the last one is filled up with zeros.
template <class Arch, class F>
inline void for_blocks(const float* x, std::size_t k, F f) {
  float filled[kInt8Block<Arch>] = {};
  // One call of f, which is large: in WebAssembly the kernels of int8 were half of one for rows that end within a block.
  for (std::size_t first = 0; first < k; first += kInt8Block<Arch>) {
    const std::size_t n = k - first < kInt8Block<Arch> ? k - first : kInt8Block<Arch>;
    const bool full = n == kInt8Block<Arch>;
    for (std::size_t i = 0; i < n && !full; ++i) filled[i] = x[first + i];
    f(full ? x + first : static_cast<const float*>(filled), n);
  }
}

/// min(0, x ...) and max(0, x ...); whether all are finite.
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
      lows[v % kChains] = smaller<Arch>(value, lows[v % kChains]);
      highs[v % kChains] = larger<Arch>(value, highs[v % kChains]);
      numbers = numbers & (value == value);
    }
  });
  for (std::size_t c = 1; c < kChains; ++c) {
    lows[0] = smaller<Arch>(lows[c], lows[0]);
    highs[0] = larger<Arch>(highs[c], highs[0]);
  }
  *low = xsimd::reduce_min(lows[0]);
  *high = xsimd::reduce_max(highs[0]);
  constexpr float kMost = std::numeric_limits<float>::max();
  return xsimd::all(numbers) && *low >= -kMost && *high <= kMost;
}

/// Rows of A as Dot takes them, a word of 4 bytes for each group of k, filled up with whatever meets a weight of 0.
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
  // Of numbers that are not whole, zero's included, halves go to the even one: by the sum with 1.5 · 2²³, which has the whole number in its
  // low bits.
  const F steps(step), inverses(1 / step), magic(12582912.0F);
  const auto whole_of = [&](const F& sum) { return as_ints<Arch>(sum) - as_ints<Arch>(magic); };
  std::int32_t lane[kLanes<Arch>];
  whole_of(divide<Arch>(F(-low), steps) + magic).store_unaligned(lane);
  const std::int32_t zero_point = lane[0] < 255 ? lane[0] : 255;
  const I zero_points(zero_point);
  *scale = step;
  *correction = Dot::correction(zero_point);
  // Quotients are at most 255. Multiplied by 1 / step they are less than 2⁻¹⁴ off: enough for the whole number, unless one is that close
  // to a half. Below the least normal number a step is coarser and 1 / step may be infinite.
  const bool may_multiply = step >= std::numeric_limits<float>::min();
  const F nearly_half(0.5F - 0x1p-13F);
  for_blocks<Arch>(x, k, [&](const float* block, std::size_t n) {
    I q[kInt8Batches];
    F furthest(0.0F);
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kInt8Batches; ++v) {
      const F quotient = F::load_unaligned(block + v * kLanes<Arch>) * inverses, sum = quotient + magic;
      furthest = larger<Arch>(xsimd::abs(quotient - (sum - magic)), furthest);
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
  std::size_t words;     ///< of a row of A
  std::uintptr_t ahead;  ///< as TileArguments'
  std::uintptr_t ahead_bytes;
};

/// Rows of a tile: a product may need a register before it is added, as it does where float32 is not fused.
template <class Arch>
inline constexpr std::size_t kInt8Rows = Tile<Everywhere<Arch>>::kMr;

/// Rows × kNr elements of C.
template <class Dot, class Arch, std::size_t Rows>
void int8_tile(const Int8TileArguments& t) {
  using F = Batch<Arch>;
  using I = Ints<Arch>;
  constexpr std::size_t kNr = Tile<Arch>::kNr, kStep = kLanes<Arch> * Dot::kGroup;  // kStep: bytes of weights for one batch of columns
  I sum[Rows][2];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i) sum[i][0] = sum[i][1] = I(0);
  const std::int8_t* weights = t.weights;
  const std::int32_t* a = t.a;
  std::uintptr_t ahead = t.ahead;
#pragma GCC unroll 1
  for (std::size_t p = 0; p < t.words; ++p, a += Rows, weights += 2 * kStep, ahead += t.ahead_bytes) {
    prefetch<Arch>(ahead);
    const I left = Dot::load(weights), right = Dot::load(weights + kStep);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Rows; ++i) {
      const I x(a[i]);
      sum[i][0] = Dot::add(sum[i][0], left, x);
      sum[i][1] = Dot::add(sum[i][1], right, x);
    }
  }
  // Through memory: with what follows in the same loop g++ would keep the sums there from the start.
  alignas(64) std::int32_t exact[Rows * kNr];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) sum[i][v].store_unaligned(exact + i * kNr + v * kLanes<Arch>);
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < kNr; j += kLanes<Arch>) {
      const I product = without<Arch>(I::load_unaligned(exact + i * kNr + j), I::load_unaligned(t.weight_sums + j), t.corrections[i]);
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
  const auto [tiles, height, taller] = Tiling(g.m, kMr);
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
                        .ahead = reinterpret_cast<std::uintptr_t>(g.panels + (j / kNr + (j + columns < g.n ? 1 : 0)) * panel),
                        .ahead_bytes = (kNr * Dot::kGroup + tiles - 1) / tiles};
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
      t.ahead += words * t.ahead_bytes;
      t.a += rows * words;
      t.scales += rows;
      t.corrections += rows;
      t.c += rows * t.ldc;
    }
  }
}

/// Dot's products in registers alone, as in peak.hpp; whole numbers may wrap around. One instruction that adds has a sum of its own each.
/// Where it takes two, sums whose products are equal would have one product, so they have different ones, and factors that no compiler
/// knows, or it would take them out of the loop.
template <class Dot, class Arch>
std::size_t int8_multiply_adds(std::size_t count) {
  using I = Ints<Arch>;
  constexpr bool kPairs = Dot::kGroup == 2;
  constexpr std::size_t kWeights = kPairs ? 2 : 1, kRows = kPairs ? 4 : 12, kPerRound = kWeights * kRows * kLanes<Arch> * Dot::kGroup;
  volatile std::int32_t seed = 0x01ff0203;
  // Each from a number of its own: Binaryen takes several loads of a volatile for one.
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
      if constexpr (kPairs) weights[j] = unknown<Arch>(weights[j]);
    }
  }
  I all = sum[0][0];
  for (std::size_t i = 1; i < kWeights * kRows; ++i) all = all ^ sum[i / kRows][i % kRows];
  std::int32_t lane[kLanes<Arch>];
  all.store_unaligned(lane);
  seed = lane[0];
  return rounds * kPerRound;
}

/// Products: whose instruction multiplies, where Dot's is the same.
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
