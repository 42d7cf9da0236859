#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

#include "attn/memory/scratch.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// Slices gathered together: the floats of a cache line.
inline constexpr std::size_t kSlices = 16;

/// Calls kernel(x, y, n) for each slice along `dim`; y may be x[0]. The inputs have the same shape, and y is
/// contiguous. `cost`: multiply-adds per number.
template <std::size_t N, class Kernel>
void for_each_slice(const std::array<TensorView, N>& inputs, std::size_t dim, double cost, float* y, const Kernel& kernel) {
  const Shape& shape = inputs[0].shape;
  const auto length = static_cast<std::size_t>(shape[dim]);
  std::size_t outer = 1, inner = 1;  // (outer,length,inner)
  for (std::size_t axis = 0; axis < dim; ++axis) outer *= static_cast<std::size_t>(shape[axis]);
  for (std::size_t axis = dim + 1; axis < shape.rank(); ++axis) inner *= static_cast<std::size_t>(shape[axis]);
  const std::size_t slices = outer * inner;
  if (slices == 0 || length == 0) return;

  const double all = cost * static_cast<double>(slices) * static_cast<double>(length);
  const auto rows = std::apply([](const auto&... input) { return std::array{Rows(input)...}; }, inputs);
  if (dim + 1 == shape.rank()) {
    parallel::run(slices, parallel::workers_for(slices, all), [&](std::size_t slice, unsigned) noexcept {
      std::array<const float*, N> x;
      for (std::size_t input = 0; input < N; ++input) x[input] = rows[input][slice];
      kernel(x, y + slice * length, length);
    });
    return;
  }
  // A task covers columns of one row of the last dimension.
  const std::size_t width = rows[0].width(), step = inner / width, blocks = outer * step;
  const unsigned wanted = parallel::workers_for(blocks * width, all);
  const std::size_t parts = std::max((width + kSlices - 1) / kSlices, std::min(width, (wanted + blocks - 1) / blocks));
  const std::size_t group = (width + parts - 1) / parts, size = group * length, tasks = blocks * parts;
  const auto workers = static_cast<unsigned>(std::min<std::size_t>(wanted, tasks));
  Scratch scratch;
  float* const buffers = scratch.take(workers * N, size);
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    const std::size_t row = task / parts, first = row / step * length * step + row % step;
    const std::size_t column = std::min(width, task % parts * group), count = std::min(group, width - column);
    float* const gathered = buffers + worker * N * size;
    for (std::size_t input = 0; input < N; ++input)
      for (std::size_t i = 0; i < length; ++i) {
        const float* const from = rows[input][first + i * step] + column;
        float* const to = gathered + input * size + i;
        for (std::size_t slice = 0; slice < count; ++slice) to[slice * length] = from[slice];
      }
    for (std::size_t slice = 0; slice < count; ++slice) {
      std::array<const float*, N> x;
      for (std::size_t input = 0; input < N; ++input) x[input] = gathered + input * size + slice * length;
      kernel(x, gathered + slice * length, length);
    }
    for (std::size_t i = 0; i < length; ++i) {
      float* const to = y + (first + i * step) * width + column;
      for (std::size_t slice = 0; slice < count; ++slice) to[slice] = gathered[slice * length + i];
    }
  });
}

}  // namespace attn::detail
