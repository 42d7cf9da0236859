#include "attn/kernels/kernels.hpp"

#include <cmath>

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

void pack_transposed(const float* panels, std::size_t n, std::size_t k, std::size_t nr, float* transposed) {
  for (std::size_t i = 0; i < packed_size(nr, k, n); ++i) transposed[i] = 0;
  // Row j of W is column j of its transpose: a panel of that holds nr of k at a time.
  for (std::size_t j = 0; j < n; ++j) {
    const float* const from = panels + j / nr * panel_size(nr, k) + j % nr;
    for (std::size_t p = 0; p < k; ++p) transposed[p / nr * panel_size(nr, n) + j * nr + p % nr] = from[p * nr];
  }
}

void transpose(const float* x, std::ptrdiff_t row_stride, std::size_t m, std::size_t n, float* transposed) {
  for (std::size_t i = 0; i < m; ++i, x += row_stride)
    for (std::size_t j = 0; j < n; ++j) transposed[j * m + i] = x[j];
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
/// Calls use(place in the panels, p) for each number of a row.
template <class Use>
void each_place(std::size_t row, std::size_t k, std::size_t nr, std::size_t group, Use use) {
  std::size_t place = row / nr * int8_panel_size(nr, group, k) + row % nr * group;
  for (std::size_t first = 0; first < k; first += group, place += nr * group)
    for (std::size_t p = first; p < first + group && p < k; ++p) use(place + p - first, p);
}
}  // namespace

void pack_int8_row(const std::int8_t* q, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* panels) {
  each_place(row, k, nr, group, [&](std::size_t place, std::size_t p) { panels[place] = q[p]; });
}

void unpack_int8_row(const std::int8_t* panels, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* q) {
  each_place(row, k, nr, group, [&](std::size_t place, std::size_t p) { q[p] = panels[place]; });
}

}  // namespace attn::kernels
