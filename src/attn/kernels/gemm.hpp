#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/kernels/simd.hpp"

// One lane sums each element in the order of k, starting from the bias, so its bits do not depend on tiles or threads.
namespace attn::kernels {

/// kMr rows × kNr columns: 2 · kMr accumulators, 2 registers for W, 1 for A, and 1 for a product that is not fused.
template <class Arch>
struct Tile {
#if defined(__wasm_relaxed_simd__)
  // 12 + 2 + 1 = 15 of 16: V8 reserves one, and 6 rows would spill products that are not fused.
  static constexpr std::size_t kMr = kIsFused<Arch> ? 6 : 5;
#elif defined(__AVX512F__)
  static constexpr std::size_t kMr = 12;  // 24 + 2 + 1 = 27 of 32
#elif defined(__FMA__)
  static constexpr std::size_t kMr = 6;  // 12 + 2 + 1 = 15 of 16
#elif defined(__aarch64__)
  static constexpr std::size_t kMr = 8;  // 16 + 2 + 1 = 19 of 32
#else
  static constexpr std::size_t kMr = 5;  // 10 + 2 + 1 + 1 = 14 of 16: simd128, SSE, emulated
#endif
  static constexpr std::size_t kNr = 2 * kLanes<Arch>;
  /// Panels per tile: 1 or 2 rows of one panel have too few accumulators to keep the multipliers busy.
  static constexpr std::size_t panels(std::size_t rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
};

template <class Arch>
Batch<Arch> load_weights(const float* weights) {
  return Batch<Arch>::load_unaligned(weights);
}

/// C = alpha · (start + A Wᵀ)
template <class Weight>
struct TileArguments {
  const float* a;
  std::ptrdiff_t lda;
  const Weight* weights;  ///< k × kNr
  std::ptrdiff_t panel_stride;
  const float* start;
  std::ptrdiff_t start_stride, start_panel_stride;  ///< per row (0 if all rows start alike) and per panel
  float* c;
  std::ptrdiff_t ldc;
  std::size_t k;
  float alpha;
  const float* blocked_terms;
  std::uintptr_t prefetch_address;  ///< an integer, because it may pass the end
  std::uintptr_t prefetch_bytes;    ///< per step of k
};

/// WebAssembly has no instruction for it.
template <class Arch>
void prefetch([[maybe_unused]] std::uintptr_t address) {
#if !defined(__wasm__)
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
#endif
}

/// Points to the next element of each row. Up to 6 rows share one pointer; of more, every three share one, because g++
/// has too few address registers for one each. A pointer for all rows starts one row early: V8 would hoist a row
/// without an offset and spill. Computed as an integer, because a pointer before an array is undefined.
template <class Arch, std::size_t Rows>
class RowPointers {
 public:
  RowPointers(const float* a, std::ptrdiff_t stride) : stride_(stride) {
    const auto first = reinterpret_cast<std::uintptr_t>(a), row = static_cast<std::uintptr_t>(stride) * sizeof(float);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kPointers; ++i) before_[i] = reinterpret_cast<const float*>(first + (i * kShared - kBefore) * row);
#ifndef __wasm__
    // If g++ sees this sum, it uses a second register as a counter.
    for (const float*& pointer : before_) __asm__("" : "+r"(pointer));
#endif
  }
  float operator[](std::size_t row) const { return before_[row / kShared][static_cast<std::ptrdiff_t>(row % kShared + kBefore) * stride_]; }
  void advance() {
#pragma GCC unroll 16
    for (const float*& pointer : before_) ++pointer;
  }

 private:
  static constexpr std::size_t kShared = Rows > 6 ? 3 : Rows, kPointers = (Rows + kShared - 1) / kShared, kBefore = kShared == Rows ? 1 : 0;
  const float* before_[kPointers];
  std::ptrdiff_t stride_;
};

/// k is not unrolled: compilers would hoist loads and spill accumulators, which is 2 × slower. V8 schedules
/// multiply-adds in the order of the accumulators' initialization. Loading the start row by row, even if all rows start
/// alike, keeps one factor live, and nothing spills.
template <class Arch, class Weight, std::size_t Rows, std::size_t Panels, bool Skipping>
void gemm_tile(const TileArguments<Weight>& t) {
  using F = Batch<Arch>;
  constexpr std::size_t kNr = Tile<Arch>::kNr, kBatches = 2 * Panels;
  const auto at = [](std::size_t index, std::ptrdiff_t stride) { return static_cast<std::ptrdiff_t>(index) * stride; };
  const auto half = [](std::size_t v) { return v % 2 * kLanes<Arch>; };
  F sum[Rows][kBatches];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kBatches; ++v)
      sum[i][v] = F::load_unaligned(t.start + at(i, t.start_stride) + at(v / 2, t.start_panel_stride) + half(v));
  RowPointers<Arch, Rows> rows(t.a, t.lda);
  const Weight* weights = t.weights;
  std::uintptr_t prefetch_address = t.prefetch_address;
#pragma GCC unroll 1
  for (std::size_t p = 0; p < t.k; ++p, rows.advance(), weights += kNr, prefetch_address += t.prefetch_bytes) {
    if constexpr (Skipping)
      if (t.blocked_terms[p] == -std::numeric_limits<float>::infinity()) continue;
    prefetch<Arch>(prefetch_address);
    F w[kBatches];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kBatches; ++v) w[v] = load_weights<Arch>(weights + at(v / 2, t.panel_stride) + half(v));
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Rows; ++i) {
      const F x(rows[i]);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < kBatches; ++v) sum[i][v] = multiply_add<Arch>(x, w[v], sum[i][v]);
    }
  }
  const F factor(t.alpha);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kBatches; ++v) (sum[i][v] * factor).store_unaligned(t.c + at(i, t.ldc) + v * kLanes<Arch>);
}

template <class Weight>
using TileFunction = void (*)(const TileArguments<Weight>&);

/// Uses a full-width buffer, because fewer than kNr columns are in C.
template <class Arch, class Weight>
void gemm_last_columns(TileFunction<Weight> tile, const TileArguments<Weight>& t, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kNr = Tile<Arch>::kNr;
  float buffer[Tile<Arch>::kMr * kNr];
  const auto row_of_c = [&](std::size_t row) { return t.c + static_cast<std::ptrdiff_t>(row) * t.ldc; };
  TileArguments<Weight> whole = t;
  whole.c = buffer;
  whole.ldc = kNr;
  if (t.start == t.c) {
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t j = 0; j < kNr; ++j) buffer[row * kNr + j] = j < columns ? row_of_c(row)[j] : 0.0F;
    whole.start = buffer;
    whole.start_stride = kNr;
  }
  tile(whole);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t j = 0; j < columns; ++j) row_of_c(row)[j] = buffer[row * kNr + j];
}

template <class Arch, class Weight>
void gemm(const Gemm<Weight>& g) {
  using T = Tile<Arch>;
  constexpr std::size_t kMr = T::kMr, kNr = T::kNr;
  // By number of rows; 0: one row with blocked terms skipped.
  using Tiles = std::array<TileFunction<Weight>, kMr + 1>;
  constexpr auto rows_up_to_mr = std::make_index_sequence<kMr>{};
  static constexpr auto kTiles = []<std::size_t... I>(std::index_sequence<I...>) {
    return Tiles{&gemm_tile<Arch, Weight, 1, 1, true>, &gemm_tile<Arch, Weight, I + 1, 1, false>...};
  }(rows_up_to_mr);
  static constexpr auto kWideTiles = []<std::size_t... I>(std::index_sequence<I...>) {
    return Tiles{&gemm_tile<Arch, Weight, 1, T::panels(1), true>, &gemm_tile<Arch, Weight, I + 1, T::panels(I + 1), false>...};
  }(rows_up_to_mr);
  static constexpr float kZeros[kNr] = {};
  float last_bias[kNr] = {};  // for columns that do not fill a panel

  if (g.m == 0) return;
  const float* const start = g.accumulate ? g.c : g.bias;
  const auto [tiles, height, taller] = RowTiles(g.m, kMr);
  const std::size_t wide = g.m <= kMr ? T::panels(g.m) * kNr : kNr;
  for (std::size_t j = 0; j < g.n;) {
    const std::size_t columns = g.n - j >= wide ? wide : g.n - j < kNr ? g.n - j : kNr;
    TileArguments<Weight> t{
        .a = g.a,
        .lda = g.lda,
        .weights = g.panels + j / kNr * g.panel_stride,
        .panel_stride = static_cast<std::ptrdiff_t>(g.panel_stride),
        .start = start != nullptr ? start + j : kZeros,
        .start_stride = g.accumulate ? g.ldc : 0,
        .start_panel_stride = start != nullptr ? static_cast<std::ptrdiff_t>(kNr) : 0,
        .c = g.c + j,
        .ldc = g.ldc,
        .k = g.k,
        .alpha = g.alpha,
        .blocked_terms = g.blocked_terms,
        .prefetch_address = reinterpret_cast<std::uintptr_t>(g.panels + (j + columns < g.n ? j + columns : j) / kNr * g.panel_stride),
        .prefetch_bytes = (kNr * sizeof(Weight) + tiles - 1) / tiles};
    if (columns < kNr && start != nullptr && !g.accumulate) {
      for (std::size_t i = 0; i < columns; ++i) last_bias[i] = g.bias[j + i];
      t.start = last_bias;
    }
    const auto multiply = [&](std::size_t rows, std::size_t count) {
      const std::size_t tile = g.blocked_terms != nullptr ? 0 : rows;
      for (; count > 0; --count) {
        if (columns < kNr)
          gemm_last_columns<Arch, Weight>(kTiles[tile], t, rows, columns);
        else
          (columns == wide ? kWideTiles : kTiles)[tile](t);
        t.prefetch_address += g.k * t.prefetch_bytes;
        t.a += static_cast<std::ptrdiff_t>(rows) * t.lda;
        t.start += static_cast<std::ptrdiff_t>(rows) * t.start_stride;
        t.c += static_cast<std::ptrdiff_t>(rows) * t.ldc;
      }
    };
    multiply(height + 1, taller);
    multiply(height, tiles - taller);
    j += columns;
  }
}

}  // namespace attn::kernels
