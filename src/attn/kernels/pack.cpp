#include "attn/kernels/kernels.hpp"

#include <cmath>
#include <cstring>

namespace attn::kernels {

void pack(const float* w, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::size_t n, std::size_t k, std::size_t nr, float* panels) {
  for (std::size_t first = 0; first < n; first += nr, panels += panel_size(nr, k)) {
    const std::size_t columns = n - first < nr ? n - first : nr;
    if (columns < nr)
      for (std::size_t i = 0; i < panel_size(nr, k); ++i) panels[i] = 0;
    const float* source = w + static_cast<std::ptrdiff_t>(first) * row_stride;
    // Along the direction in which w lies, since keys and values are packed in every forward.
    if (row_stride == 1) {
      for (std::size_t p = 0; p < k; ++p, source += column_stride)
        for (std::size_t j = 0; j < columns; ++j) panels[p * nr + j] = source[j];
    } else {
      for (std::size_t j = 0; j < columns; ++j, source += row_stride)
        for (std::size_t p = 0; p < k; ++p) panels[p * nr + j] = source[static_cast<std::ptrdiff_t>(p) * column_stride];
    }
  }
}

void pack_row(const float* w, std::size_t row, std::size_t k, std::size_t nr, float* panels) {
  float* const to = panels + row / nr * panel_size(nr, k) + row % nr;
  for (std::size_t p = 0; p < k; ++p) to[p * nr] = w[p];
}

void unpack(const float* panels, std::size_t n, std::size_t k, std::size_t nr, float* w) {
  for (std::size_t row = 0; row < n; ++row) unpack_row(panels, row, k, nr, w + row * k);
}

void unpack_row(const float* panels, std::size_t row, std::size_t k, std::size_t nr, float* w) {
  const float* const from = panels + row / nr * panel_size(nr, k) + row % nr;
  for (std::size_t p = 0; p < k; ++p) w[p] = from[p * nr];
}

namespace {
/// to = fromᵀ, squares of Nr × Nr side by side.
template <std::size_t Nr>
void turn_square(const float* from, float* to) {
  for (std::size_t j = 0; j < Nr; ++j)
    for (std::size_t p = 0; p < Nr; ++p) to[j * Nr + p] = from[p * Nr + j];
}
}  // namespace

void pack_transposed(const float* panels, std::size_t n, std::size_t k, std::size_t nr, std::size_t first, std::size_t end, float* transposed) {
  // Row j of W is column j of its transpose, a panel of which holds nr of k. Squares of nr × nr lie side by side in both: one is turned at
  // a time, in the order in which W lies.
  const auto turn = nr == 8 ? turn_square<8> : nr == 16 ? turn_square<16> : nr == 32 ? turn_square<32> : nullptr;
  for (std::size_t row = 0; row < n; row += nr) {
    const std::size_t rows = n - row < nr ? n - row : nr;
    float* to = transposed + row * nr;
    for (std::size_t column = first; column < end; column += nr, to += panel_size(nr, n)) {
      const std::size_t columns = end - column < nr ? end - column : nr;
      const float* const from = panels + row / nr * panel_size(nr, k) + column * nr;
      if (turn != nullptr && rows == nr && columns == nr) {
        turn(from, to);
        continue;
      }
      for (std::size_t j = 0; j < rows; ++j) {
        for (std::size_t p = 0; p < columns; ++p) to[j * nr + p] = from[p * nr + j];
        for (std::size_t p = columns; p < nr; ++p) to[j * nr + p] = 0;
      }
    }
  }
}

void transpose(const float* x, std::ptrdiff_t row_stride, std::size_t m, std::size_t n, float* transposed) {
  constexpr std::size_t kTile = 16;  // a cache line each way
  for (std::size_t first = 0; first < m; first += kTile, x += static_cast<std::ptrdiff_t>(kTile) * row_stride) {
    const std::size_t rows = m - first < kTile ? m - first : kTile;
    for (std::size_t column = 0; column < n; column += kTile) {
      const std::size_t end = n - column < kTile ? n : column + kTile;
      for (std::size_t j = column; j < end; ++j)
        for (std::size_t i = 0; i < rows; ++i)
          transposed[j * m + first + i] = x[static_cast<std::ptrdiff_t>(i) * row_stride + static_cast<std::ptrdiff_t>(j)];
    }
  }
}

std::int32_t quantize_weights(const float* w, std::size_t k, std::int8_t* q, float* scale) {
  float most = 0;
  for (std::size_t p = 0; p < k; ++p) most = std::abs(w[p]) > most ? std::abs(w[p]) : most;
  *scale = most / 127;
  std::int32_t sum = 0;
  for (std::size_t p = 0; p < k; ++p) {
    // Of numbers near the least there are, the scale may be rounded so far down that q would be more.
    const float nearest = *scale == 0 ? 0.0F : std::nearbyint(w[p] / *scale);
    q[p] = static_cast<std::int8_t>(nearest > 127 ? 127 : nearest < -127 ? -127 : nearest);
    sum += q[p];
  }
  return sum;
}

namespace {
/// Copies k bytes in groups, which lie `from_step` and `to_step` apart. A group is as many bytes as one move takes.
template <std::size_t Group>
void copy_groups(const std::int8_t* from, std::size_t from_step, std::size_t k, std::int8_t* to, std::size_t to_step) {
  for (; k >= Group; k -= Group, from += from_step, to += to_step) std::memcpy(to, from, Group);
  for (std::size_t p = 0; p < k; ++p) to[p] = from[p];
}

void copy_groups(std::size_t group, const std::int8_t* from, std::size_t from_step, std::size_t k, std::int8_t* to, std::size_t to_step) {
  (group == 4 ? copy_groups<4> : copy_groups<2>)(from, from_step, k, to, to_step);
}

/// Of a row's first group in the panels.
std::size_t int8_first(std::size_t row, std::size_t k, std::size_t nr, std::size_t group) {
  return row / nr * int8_panel_size(nr, group, k) + row % nr * group;
}
}  // namespace

void pack_int8_row(const std::int8_t* q, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* panels) {
  copy_groups(group, q, group, k, panels + int8_first(row, k, nr, group), nr * group);
}

void unpack_int8_row(const std::int8_t* panels, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* q) {
  copy_groups(group, panels + int8_first(row, k, nr, group), nr * group, k, q, group);
}

}  // namespace attn::kernels
