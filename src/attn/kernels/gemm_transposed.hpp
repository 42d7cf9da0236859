#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/gemm.hpp"

// For gradients of weights, keys and values. One lane sums each element in the order of k, starting from C, so blocks
// of rows do not change the bits.
namespace attn::kernels {

/// Uses the registers of gemm_tile (see Tile).
template <class Arch, std::size_t Rows>
void gemm_transposed_tile(const float* a, std::ptrdiff_t lda, const float* weights, float* c, std::ptrdiff_t ldc, std::size_t k) {
  using F = Batch<Arch>;
  constexpr std::size_t kNr = Tile<Arch>::kNr;
  const auto place = [&](std::size_t i, std::size_t v) { return c + static_cast<std::ptrdiff_t>(i) * ldc + v * kLanes<Arch>; };
  F sum[Rows][2];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) sum[i][v] = F::load_unaligned(place(i, v));
#pragma GCC unroll 1
  for (std::size_t p = 0; p < k; ++p, a += lda, weights += kNr) {
    const F low = F::load_unaligned(weights), high = F::load_unaligned(weights + kLanes<Arch>);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Rows; ++i) {
      const F x(a[i]);
      sum[i][0] = multiply_add<Arch>(x, low, sum[i][0]);
      sum[i][1] = multiply_add<Arch>(x, high, sum[i][1]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) sum[i][v].store_unaligned(place(i, v));
}

template <class Arch>
void gemm_transposed(const GemmTransposed& g) {
  constexpr std::size_t kMr = Tile<Arch>::kMr, kNr = Tile<Arch>::kNr;
  using TransposedTile = void (*)(const float*, std::ptrdiff_t, const float*, float*, std::ptrdiff_t, std::size_t);
  static constexpr auto kTiles = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<TransposedTile, kMr>{&gemm_transposed_tile<Arch, I + 1>...};
  }(std::make_index_sequence<kMr>{});

  // The tile's columns of A stay in the L1 cache while they are multiplied by all panels.
  for (std::size_t i = 0; i < g.m; i += kMr) {
    const std::size_t rows = g.m - i < kMr ? g.m - i : kMr;
    float* const c = g.c + static_cast<std::ptrdiff_t>(i) * g.ldc;
    const float* panel = g.panels;
    std::size_t j = 0;
    for (; j + kNr <= g.n; j += kNr, panel += g.panel_stride) kTiles[rows - 1](g.a + i, g.lda, panel, c + j, g.ldc, g.k);
    if (j == g.n) continue;
    float buffer[kMr * kNr] = {};
    const std::size_t columns = g.n - j;
    const auto row_of_c = [&](std::size_t row) { return c + static_cast<std::ptrdiff_t>(row) * g.ldc + j; };
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) buffer[row * kNr + column] = row_of_c(row)[column];
    kTiles[rows - 1](g.a + i, g.lda, panel, buffer, kNr, g.k);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column) row_of_c(row)[column] = buffer[row * kNr + column];
  }
}

}  // namespace attn::kernels
