#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attn/kernels/kernels.hpp"

namespace attn::test {

struct QuantizedRow {
  std::vector<std::int32_t> q;
  float scale;
};

inline QuantizedRow defined_row(const std::vector<float>& x) {
  QuantizedRow row{std::vector<std::int32_t>(x.size()), 0};
  float low = 0, high = 0;
  for (const float value : x) {
    if (!std::isfinite(value)) {
      row.scale = std::numeric_limits<float>::quiet_NaN();
      return row;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
  row.scale = high / 255.0F - low / 255.0F;
  if (row.scale == 0) return row;
  const float z = std::clamp(std::nearbyint(-low / row.scale), 0.0F, 255.0F);
  for (std::size_t i = 0; i < x.size(); ++i)
    row.q[i] = static_cast<std::int32_t>(std::clamp(std::nearbyint(x[i] / row.scale) + z, 0.0F, 255.0F)) - static_cast<std::int32_t>(z);
  return row;
}

struct QuantizedWeights {
  std::size_t n, k;
  std::vector<std::int8_t> q;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
};

inline std::int32_t quantize_weights(const float* w, std::size_t k, std::int8_t* q, float* scale) {
  float most = 0;
  for (std::size_t p = 0; p < k; ++p) most = std::max(most, std::abs(w[p]));
  *scale = most / 127;
  std::int32_t sum = 0;
  for (std::size_t p = 0; p < k; ++p) {
    q[p] = static_cast<std::int8_t>(*scale == 0 ? 0.0F : std::clamp(std::nearbyint(w[p] / *scale), -127.0F, 127.0F));
    sum += q[p];
  }
  return sum;
}

inline QuantizedWeights quantized(const std::vector<float>& w, std::size_t n, std::size_t k) {
  QuantizedWeights weights{n, k, std::vector<std::int8_t>(n * k), std::vector<float>(n), std::vector<std::int32_t>(n)};
  for (std::size_t j = 0; j < n; ++j) weights.sums[j] = quantize_weights(w.data() + j * k, k, weights.q.data() + j * k, &weights.scales[j]);
  return weights;
}

inline std::vector<float> defined_product(const std::vector<float>& x, std::size_t m, const QuantizedWeights& w, const float* bias) {
  std::vector<float> c(m * w.n);
  for (std::size_t i = 0; i < m; ++i) {
    const QuantizedRow row = defined_row({x.begin() + static_cast<std::ptrdiff_t>(i * w.k), x.begin() + static_cast<std::ptrdiff_t>((i + 1) * w.k)});
    for (std::size_t j = 0; j < w.n; ++j) {
      std::int64_t sum = 0;
      for (std::size_t p = 0; p < w.k; ++p) sum += std::int64_t{row.q[p]} * w.q[j * w.k + p];
      float result = static_cast<float>(sum) * row.scale;
      result = result * w.scales[j];
      c[i * w.n + j] = result + (bias != nullptr ? bias[j] : 0.0F);
    }
  }
  return c;
}

}  // namespace attn::test
