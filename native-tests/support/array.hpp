#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "attn/tensor/shape.hpp"

namespace attn::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kEps = 0x1p-23;
inline constexpr double kSmallestDenormal = 0x1p-149;
/// exp returns 0 below.
inline constexpr double kSmallestNormal = 0x1p-126;

inline std::size_t size_of(const Shape& dims) {
  std::size_t size = 1;
  for (const std::int64_t dim : dims) size *= static_cast<std::size_t>(dim);
  return size;
}

struct Array {
  Shape dims;
  std::vector<float> data;

  Array() = default;
  explicit Array(const Shape& shape, float value = 0) : dims(shape), data(size_of(shape), value) {}
  Array(const Shape& shape, std::vector<float> values) : dims(shape), data(std::move(values)) {}

  bool operator==(const Array&) const = default;
};

inline Array slice(const Array& x, std::int64_t i) {
  Array part;
  for (std::size_t axis = 1; axis < x.dims.rank(); ++axis) part.dims.push_back(x.dims[axis]);
  const auto size = static_cast<std::ptrdiff_t>(size_of(part.dims));
  part.data.assign(x.data.begin() + i * size, x.data.begin() + (i + 1) * size);
  return part;
}

inline Array stack(const std::vector<Array>& parts) {
  Array all;
  all.dims.push_back(static_cast<std::int64_t>(parts.size()));
  for (const std::int64_t dim : parts.at(0).dims) all.dims.push_back(dim);
  for (const Array& part : parts) all.data.insert(all.data.end(), part.data.begin(), part.data.end());
  return all;
}

inline Array take(const Array& x, const std::vector<std::int64_t>& order) {
  std::vector<Array> parts;
  for (const std::int64_t i : order) parts.push_back(slice(x, i));
  return stack(parts);
}

inline Array reshaped(Array x, const Shape& dims) {
  x.dims = dims;
  return x;
}

inline Array transposed(const Array& x) {
  Array y({x.dims[1], x.dims[0]});
  const auto m = static_cast<std::size_t>(x.dims[0]), n = static_cast<std::size_t>(x.dims[1]);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) y.data[j * m + i] = x.data[i * n + j];
  return y;
}

}  // namespace attn::test
