#include "attn/kernels/kernels.hpp"

namespace attn::kernels {

void pack(const float* w, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, const float* bias, std::size_t n, std::size_t k, std::size_t nr,
          float* panels) {
  for (std::size_t first = 0; first < n; first += nr) {
    const std::size_t columns = n - first < nr ? n - first : nr;
    for (std::size_t j = 0; j < nr; ++j) panels[j] = bias != nullptr && j < columns ? bias[first + j] : 0.0F;
    panels += nr;
    if (columns < nr)
      for (std::size_t i = 0; i < nr * k; ++i) panels[i] = 0;
    const float* source = w + static_cast<std::ptrdiff_t>(first) * row_stride;
    // Along the direction in which w lies, since keys and values are packed in every forward.
    if (row_stride == 1) {
      for (std::size_t p = 0; p < k; ++p, source += column_stride)
        for (std::size_t j = 0; j < columns; ++j) panels[p * nr + j] = source[j];
    } else {
      for (std::size_t j = 0; j < columns; ++j, source += row_stride)
        for (std::size_t p = 0; p < k; ++p) panels[p * nr + j] = source[static_cast<std::ptrdiff_t>(p) * column_stride];
    }
    panels += nr * k;
  }
}

void unpack(const float* panels, std::size_t n, std::size_t k, std::size_t nr, float* w, float* bias) {
  for (std::size_t first = 0; first < n; first += nr) {
    const float* panel = panels + first / nr * panel_size(nr, k);
    for (std::size_t j = 0; j < nr && first + j < n; ++j) {
      if (bias != nullptr) bias[first + j] = panel[j];
      for (std::size_t p = 0; w != nullptr && p < k; ++p) w[(first + j) * k + p] = panel[nr * (p + 1) + j];
    }
  }
}

}  // namespace attn::kernels
