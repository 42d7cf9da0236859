#include "attn/kernels/kernels.hpp"

#include <cstring>
#include <xsimd/xsimd.hpp>

namespace attn::kernels {

void pack(const float* w, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::size_t n, std::size_t k, std::size_t nr, float* panels) {
  for (std::size_t first = 0; first < n; first += nr, panels += panel_size(nr, k)) {
    const std::size_t columns = n - first < nr ? n - first : nr;
    if (columns < nr)
      for (std::size_t i = 0; i < panel_size(nr, k); ++i) panels[i] = 0;
    const float* source = w + static_cast<std::ptrdiff_t>(first) * row_stride;
    // Reads w along its contiguous dimension, because every forward pass packs keys and values.
    if (row_stride == 1) {
      for (std::size_t p = 0; p < k; ++p, source += column_stride)
        for (std::size_t j = 0; j < columns; ++j) panels[p * nr + j] = source[j];
    } else if (column_stride == 1) {
      transpose(source, row_stride, columns, k, panels, nr);
    } else {
      for (std::size_t j = 0; j < columns; ++j, source += row_stride)
        for (std::size_t p = 0; p < k; ++p) panels[p * nr + j] = source[static_cast<std::ptrdiff_t>(p) * column_stride];
    }
  }
}

void unpack(const float* panels, std::size_t n, std::size_t k, std::size_t nr, float* w) {
  for (std::size_t row = 0; row < n; row += nr, panels += panel_size(nr, k))
    transpose(panels, static_cast<std::ptrdiff_t>(nr), k, n - row < nr ? n - row : nr, w + row * k, k);
}

void pack_transposed(const float* panels, std::size_t n, std::size_t k, std::size_t nr, std::size_t first, std::size_t end, float* transposed) {
  if (first >= end) return;  // then `transposed` may be null
  // Transposes squares of nr × nr, contiguous in both, in the memory order of W.
  for (std::size_t row = 0; row < n; row += nr) {
    const std::size_t rows = n - row < nr ? n - row : nr;
    float* to = transposed + row * nr;
    for (std::size_t column = first; column < end; column += nr, to += panel_size(nr, n)) {
      const std::size_t columns = end - column < nr ? end - column : nr;
      const float* const square = panels + row / nr * panel_size(nr, k) + column * nr;
      // The square below is too far away for the hardware prefetcher.
      constexpr std::size_t kCacheLine = 64 / sizeof(float);
      if (row + nr < n)
        for (std::size_t at = 0; at < columns * nr; at += kCacheLine) __builtin_prefetch(square + panel_size(nr, k) + at);
      transpose(square, static_cast<std::ptrdiff_t>(nr), columns, rows, to, nr);
      for (std::size_t j = 0; j < rows; ++j)
        for (std::size_t p = columns; p < nr; ++p) to[j * nr + p] = 0;
    }
  }
}

namespace {
void transpose_square(const float* x, std::ptrdiff_t row_stride, float* to, std::size_t to_stride) {
  using Batch = xsimd::make_sized_batch_t<float, 4>;
  const auto row = [&](std::size_t i) { return Batch::load_unaligned(x + static_cast<std::ptrdiff_t>(i) * row_stride); };
  const Batch a = row(0), b = row(1), c = row(2), d = row(3);
  const Batch ac = xsimd::zip_lo(a, c), bd = xsimd::zip_lo(b, d), ac_high = xsimd::zip_hi(a, c), bd_high = xsimd::zip_hi(b, d);
  xsimd::zip_lo(ac, bd).store_unaligned(to);
  xsimd::zip_hi(ac, bd).store_unaligned(to + to_stride);
  xsimd::zip_lo(ac_high, bd_high).store_unaligned(to + 2 * to_stride);
  xsimd::zip_hi(ac_high, bd_high).store_unaligned(to + 3 * to_stride);
}
}  // namespace

void transpose(const float* x, std::ptrdiff_t row_stride, std::size_t m, std::size_t n, float* to, std::size_t to_stride) {
  constexpr std::size_t kTile = 16, kSquare = 4;  // kTile: one cache line in each direction
  for (std::size_t first = 0; first < m; first += kTile) {
    const std::size_t rows = m - first < kTile ? m : first + kTile;
    for (std::size_t column = 0; column < n; column += kTile) {
      const std::size_t columns = n - column < kTile ? n : column + kTile;
      for (std::size_t j = column; j < columns; j += kSquare)
        for (std::size_t i = first; i < rows; i += kSquare) {
          if (i + kSquare <= rows && j + kSquare <= columns) {
            transpose_square(x + static_cast<std::ptrdiff_t>(i) * row_stride + j, row_stride, to + j * to_stride + i, to_stride);
            continue;
          }
          for (std::size_t p = i; p < rows && p < i + kSquare; ++p)
            for (std::size_t q = j; q < columns && q < j + kSquare; ++q)
              to[q * to_stride + p] = x[static_cast<std::ptrdiff_t>(p) * row_stride + static_cast<std::ptrdiff_t>(q)];
        }
    }
  }
}

namespace {
/// A constant Group copies with one move.
template <std::size_t Group>
void copy_groups(const std::int8_t* from, std::size_t from_step, std::size_t k, std::int8_t* to, std::size_t to_step) {
  for (; k >= Group; k -= Group, from += from_step, to += to_step) std::memcpy(to, from, Group);
  for (std::size_t p = 0; p < k; ++p) to[p] = from[p];
}

void copy_groups(std::size_t group, const std::int8_t* from, std::size_t from_step, std::size_t k, std::int8_t* to, std::size_t to_step) {
  (group == 4 ? copy_groups<4> : copy_groups<2>)(from, from_step, k, to, to_step);
}

std::size_t int8_first(std::size_t row, std::size_t k, std::size_t nr, std::size_t group) {
  return row / nr * int8_panel_size(nr, group, k) + row % nr * group;
}
}  // namespace

void pack_int8_row(const std::int8_t* q, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* panels) {
  copy_groups(group, q, group, k, panels + int8_first(row, k, nr, group), nr * group);
}

void unpack_int8_row(const std::int8_t* panels, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::size_t first,
                     std::size_t count, std::int8_t* q) {
  copy_groups(group, panels + int8_first(row, k, nr, group) + first * nr, nr * group, count, q, group);
}

}  // namespace attn::kernels
