#include "attn/kernels/kernels.hpp"

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
  for (std::size_t row = 0; row < n; ++row) {
    const float* const from = panels + row / nr * panel_size(nr, k) + row % nr;
    for (std::size_t p = 0; p < k; ++p) w[row * k + p] = from[p * nr];
  }
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

}  // namespace attn::kernels
