#include "attn/store/tied_linear.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/store/panels.hpp"

namespace attn::detail {
namespace {

/// Returns the size, in 4-byte words, of a worker's buffer for one packed panel of W.
std::size_t buffer_size(const Table& weight, const kernels::KernelTable& kernel) {
  const std::size_t k = weight.width();
  if (!weight.is_quantized()) return kernels::panel_size(kernel.nr, k);
  return (kernels::int8_panel_size(kernel.nr, kernel.int8.group, k) + k + 3) / 4 + 2 * kernel.nr;
}

/// Rows [first, first + rows) of W, packed in `buffer` and multiplied by all of x.
struct Panel {
  const Table& weight;
  std::size_t first, rows;
  const float* bias;  // bias of the first row
  float* y;           // column of the first row
  float* buffer;
};

void multiply(const Rows& x, const Panel& panel, const RowBlocks& blocks) {
  const kernels::KernelTable& kernel = kernels::best();
  const std::size_t k = x.width(), n = panel.weight.rows();
  kernels::pack(panel.weight.row(panel.first, nullptr), static_cast<std::ptrdiff_t>(k), 1, panel.rows, k, kernel.nr, panel.buffer);
  for (std::size_t block = 0; block < blocks.count; ++block) {
    const std::size_t i = blocks.begin(block);
    kernel.gemm({.a = x[i],
                 .lda = static_cast<std::ptrdiff_t>(k),
                 .panels = panel.buffer,
                 .panel_stride = kernels::panel_size(kernel.nr, k),
                 .bias = panel.bias,
                 .c = panel.y + i * n,
                 .ldc = static_cast<std::ptrdiff_t>(n),
                 .m = blocks.begin(block + 1) - i,
                 .n = panel.rows,
                 .k = k});
  }
}

void multiply(const Panels<std::int8_t>::Input& x, std::size_t k, const Panel& panel, const RowBlocks& blocks) {
  const kernels::KernelTable& kernel = kernels::best();
  const std::size_t n = panel.weight.rows(), size = kernels::int8_panel_size(kernel.nr, kernel.int8.group, k);
  float* const scales = panel.buffer;
  auto* const sums = reinterpret_cast<std::int32_t*>(scales + kernel.nr);
  auto* const bytes = reinterpret_cast<std::int8_t*>(sums + kernel.nr);
  std::int8_t* const row = bytes + size;
  std::fill_n(bytes, size, std::int8_t{0});
  for (std::size_t j = 0; j < panel.rows; ++j) {
    panel.weight.get_quantized_row(panel.first + j, row, scales + j);
    sums[j] = std::accumulate(row, row + k, std::int32_t{0});
    kernels::pack_int8_row(row, j, k, kernel.nr, kernel.int8.group, bytes);
  }
  for (std::size_t block = 0; block < blocks.count; ++block) {
    const std::size_t i = blocks.begin(block);
    kernel.int8.gemm({.a = x.words + i * kernels::int8_words(kernel.int8.group, k),
                      .scales = x.scales + i,
                      .corrections = x.corrections + i,
                      .panels = bytes,
                      .weight_scales = scales,
                      .weight_sums = sums,
                      .bias = panel.bias,
                      .c = panel.y + i * n,
                      .ldc = n,
                      .m = blocks.begin(block + 1) - i,
                      .n = panel.rows,
                      .k = k});
  }
}

}  // namespace

void tied_linear(const Rows& x, const Table& weight, const float* bias, float* y, Scratch& scratch) {
  const std::size_t m = x.count(), n = weight.rows(), k = weight.width();
  if (m == 0 || n == 0) return;
  const Scratch::Frame frame(scratch);
  const kernels::KernelTable& kernel = kernels::best();
  const RowBlocks blocks(m);
  const std::size_t panels = (n + kernel.nr - 1) / kernel.nr, size = buffer_size(weight, kernel);
  const unsigned workers = parallel::workers_for(panels, static_cast<double>(m + 2) * static_cast<double>(n * k));  // packing costs about two rows
  float* const buffers = scratch.take(workers * size);
  const auto panel_of = [&](std::size_t index, unsigned worker) {
    const std::size_t first = index * kernel.nr;
    return Panel{weight, first, std::min(kernel.nr, n - first), bias != nullptr ? bias + first : nullptr, y + first, buffers + worker * size};
  };
  if (!weight.is_quantized()) {
    parallel::run(panels, workers, [&](std::size_t index, unsigned worker) noexcept { multiply(x, panel_of(index, worker), blocks); });
    return;
  }
  const Panels<std::int8_t>::Input quantized = Panels<std::int8_t>::prepare(x, blocks, scratch);
  parallel::run(panels, workers, [&](std::size_t index, unsigned worker) noexcept { multiply(quantized, k, panel_of(index, worker), blocks); });
}

}  // namespace attn::detail
