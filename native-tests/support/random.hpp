#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "support/array.hpp"

namespace attn::test {

/// SplitMix64 (Steele et al. 2014): <random> differs between standard libraries, but a seed must give the same numbers.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 24 bits, exact in a float.
  float unit() { return static_cast<float>(next() >> 40) * 0x1p-24F; }
  float uniform(float low, float high) { return low + (high - low) * unit(); }
  float normal() {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit();
    return sum;
  }
  bool coin(double p) { return unit() < p; }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size())))];
  }

  Array normal(const Shape& dims, float factor = 1) {
    Array x(dims);
    for (float& value : x.data) value = factor * normal();
    return x;
  }
  std::vector<std::int64_t> permutation(std::int64_t n) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    return order;
  }

 private:
  std::uint64_t state_;
};

}  // namespace attn::test
