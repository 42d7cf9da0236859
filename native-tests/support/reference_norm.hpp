#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/reference.hpp"

namespace attn::test {

/// In float64. weight and bias may be empty.
inline Estimate reference_norm(const std::vector<float>& x, const std::vector<float>& weight, const std::vector<float>& bias, double eps, bool rms) {
  const auto n = static_cast<double>(x.size()), sum_error = (std::sqrt(n) + 1) * kEps;
  double mean = 0, size = 0;
  for (const double value : x) mean += rms ? 0 : value / n, size += rms ? 0 : std::abs(value) / n;
  double spread = 0, variance = 0;
  for (const double value : x) spread += std::abs(value - mean) / n, variance += (value - mean) * (value - mean) / n;
  // The mean has two parts: a sum of values, and of deviations, which are the values for rms_norm.
  const double first_part = sum_error * size;
  std::vector<double> error;
  double variance_error = (sum_error + 3 * kEps) * variance + kSmallestDenormal;
  for (const double value : x) {
    error.push_back(rms ? 0 : kEps * (2 * std::abs(value - mean) + 2 * first_part) + sum_error * (spread + first_part));
    variance_error += 2 * std::abs(value - mean) * error.back() / n;
  }
  const double deviation = std::sqrt(variance + eps), relative = variance_error / (variance + eps) / 2 + 3 * kEps;
  Estimate y({static_cast<std::int64_t>(x.size())});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double w = weight.empty() ? 1 : weight[i], b = bias.empty() ? 0 : bias[i], normed = (x[i] - mean) / deviation * w;
    y.value[i] = normed + b;
    y.error[i] = std::abs(w) * error[i] / deviation + std::abs(normed) * relative + 2 * kEps * (std::abs(normed) + std::abs(b));
  }
  return y;
}

}  // namespace attn::test
