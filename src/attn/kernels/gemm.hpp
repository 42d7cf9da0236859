#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/kernels/simd.hpp"

// C[i][j] = alpha · (b[j] + Σₖ A[i][k] · W[j][k])
//
// Each element is summed by one lane in the order of k, starting from the bias. So its bits depend neither on the
// tile it falls into nor on how rows are shared out among threads.
namespace attn::kernels {

/// A tile is kMr rows × kNr columns in registers: kMr · 2 accumulators, 2 registers of W, 1 of A, and 1 more for the
/// product where there is no fused multiply-add.
template <class Arch>
struct Tile {
#if defined(__wasm_relaxed_simd__)
  static constexpr std::size_t kMr = 6;  // 12 + 2 + 1 = 15 of 16: V8 keeps one for itself
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
};

/// Rows × kNr elements of C. Unrolling k would make compilers hoist loads and spill accumulators: half the speed.
template <class Arch, std::size_t Rows, bool Skipping>
void gemm_tile(const float* a, std::ptrdiff_t lda, const float* panel, float* c, std::ptrdiff_t ldc, std::size_t columns, std::size_t k, float alpha,
               [[maybe_unused]] const float* skip) {
  using F = Batch<Arch>;
  constexpr std::size_t kNr = Tile<Arch>::kNr;
  F left[Rows], right[Rows];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i) {
    left[i] = F::load_unaligned(panel);
    right[i] = F::load_unaligned(panel + kLanes<Arch>);
  }
#pragma GCC unroll 1
  for (std::size_t p = 0; p < k; ++p) {
    panel += kNr;
    if constexpr (Skipping)
      if (skip[p] == -std::numeric_limits<float>::infinity()) continue;
    const F w_left = F::load_unaligned(panel);
    const F w_right = F::load_unaligned(panel + kLanes<Arch>);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Rows; ++i) {
      const F x(a[static_cast<std::ptrdiff_t>(i) * lda + static_cast<std::ptrdiff_t>(p)]);
      left[i] = multiply_add<Arch>(x, w_left, left[i]);
      right[i] = multiply_add<Arch>(x, w_right, right[i]);
    }
  }
  const F factor(alpha);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i) {
    float* row = c + static_cast<std::ptrdiff_t>(i) * ldc;
    const F x = left[i] * factor, y = right[i] * factor;
    if (columns == kNr) {
      x.store_unaligned(row);
      y.store_unaligned(row + kLanes<Arch>);
    } else if (columns > kLanes<Arch>) {
      x.store_unaligned(row);
      store_partial<Arch>(y, row + kLanes<Arch>, columns - kLanes<Arch>);
    } else {
      store_partial<Arch>(x, row, columns);
    }
  }
}

template <class Arch>
void gemm(const Gemm& g) {
  using TileFunction = void (*)(const float*, std::ptrdiff_t, const float*, float*, std::ptrdiff_t, std::size_t, std::size_t, float, const float*);
  constexpr std::size_t kMr = Tile<Arch>::kMr, kNr = Tile<Arch>::kNr;
  // By number of rows, 1 to kMr.
  static constexpr auto kTiles = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<TileFunction, kMr>{&gemm_tile<Arch, I + 1, false>...};
  }(std::make_index_sequence<kMr>{});

  // Rows in tiles of as equal a height as can be: 128 = 18 · 6 + 4 · 5 keeps every tile near its full speed.
  const std::size_t tiles = (g.m + kMr - 1) / kMr;
  for (std::size_t j = 0; j < g.n; j += kNr) {
    const float* panel = g.panels + j / kNr * g.panel_stride;
    const std::size_t columns = g.n - j < kNr ? g.n - j : kNr;
    for (std::size_t tile = 0, i = 0; tile < tiles; ++tile) {
      const std::size_t rows = g.m / tiles + (tile < g.m % tiles ? 1 : 0);
      kTiles[rows - 1](g.a + static_cast<std::ptrdiff_t>(i) * g.lda, g.lda, panel, g.c + static_cast<std::ptrdiff_t>(i) * g.ldc + j, g.ldc, columns,
                       g.k, g.alpha, nullptr);
      i += rows;
    }
  }
}

template <class Arch>
void gemm_row_skipping(const Gemm& g, const float* skip) {
  constexpr std::size_t kNr = Tile<Arch>::kNr;
  for (std::size_t j = 0; j < g.n; j += kNr)
    gemm_tile<Arch, 1, true>(g.a, g.lda, g.panels + j / kNr * g.panel_stride, g.c + j, g.ldc, g.n - j < kNr ? g.n - j : kNr, g.k, g.alpha, skip);
}

}  // namespace attn::kernels
