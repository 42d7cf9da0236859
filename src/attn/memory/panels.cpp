#include "attn/memory/panels.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/interruption.hpp"

namespace attn::detail {
namespace {

// In multiply-adds per number.
constexpr double kMoveCost = 4, kQuantizeCost = 8;

/// Calls set(row, rows, worker) for the rows of each panel of W (..,k) that are in [first, first + count).
template <class Set>
void for_each_panel(std::size_t first, std::size_t count, unsigned workers, Set set) {
  const std::size_t nr = kernels::best().nr, end = first + count, begin = first / nr;
  const auto panel_of = [&](std::size_t panel, unsigned worker) noexcept {
    const std::size_t row = std::max(first, (begin + panel) * nr);
    set(row, std::min(end, (begin + panel + 1) * nr) - row, worker);
  };
#ifdef __wasm__
  parallel::run((end + nr - 1) / nr - begin, workers, panel_of);
#else
  const Uninterrupted writing;
  try {
    parallel::run((end + nr - 1) / nr - begin, workers, panel_of);
  } catch (...) {
    // The executor threw, so the calling thread finished the work. The next call on the executor reports it;
    // half-written weights would be worse.
  }
#endif
}

unsigned workers_for_panels(std::size_t rows, std::size_t k, double cost) {
  const std::size_t nr = kernels::best().nr;
  return parallel::workers_for((rows + nr - 1) / nr, cost * static_cast<double>(rows) * static_cast<double>(k));
}

}  // namespace

void Panels<float>::allocate(std::size_t n, std::size_t k) {
  values_ = AlignedFloats(kernels::packed_size(kernels::best().nr, n, k));
  std::fill_n(values_.data(), values_.size(), 0.0F);
}

void Panels<float>::set_rows(std::size_t first, std::span<const float> rows, std::size_t k) {
  if (rows.empty()) return;
  for_each_panel(first, rows.size() / k, workers_for_panels(rows.size() / k, k, kMoveCost),
                 [&](std::size_t row, std::size_t count, unsigned) noexcept { set_panel(row, count, k, rows.data() + (row - first) * k); });
}

void Panels<float>::set(const TensorView& weight) {
  const auto n = static_cast<std::size_t>(weight.shape[0]), k = static_cast<std::size_t>(weight.shape[1]);
  const std::size_t nr = kernels::best().nr;
  values_ = AlignedFloats(kernels::packed_size(nr, n, k));
  for_each_panel(0, n, workers_for_panels(n, k, kMoveCost), [&](std::size_t row, std::size_t count, unsigned) noexcept {
    kernels::pack(weight.data + static_cast<std::ptrdiff_t>(row) * weight.strides[0], weight.strides[0], weight.strides[1], count, k, nr,
                  values_.data() + row * k);
  });
}

void Panels<float>::unpack(float* weight, std::size_t n, std::size_t k) const { kernels::unpack(values_.data(), n, k, kernels::best().nr, weight); }

void Panels<float>::get_row(std::size_t row, std::size_t k, float* values) const { get_panel(row, 1, k, values); }

void Panels<float>::transposed(std::size_t n, std::size_t k, std::size_t first, std::size_t end, float* panels) const {
  kernels::pack_transposed(values_.data(), n, k, kernels::best().nr, first, end, panels);
}

std::size_t Panels<float>::height() { return kernels::best().nr; }

void Panels<float>::get_panel(std::size_t first, std::size_t rows, std::size_t k, float* values) const {
  const std::size_t nr = height(), column = first % nr;
  kernels::transpose(values_.data() + (first - column) * k + column, static_cast<std::ptrdiff_t>(nr), k, rows, values, k);
}

void Panels<float>::set_panel(std::size_t first, std::size_t rows, std::size_t k, const float* values) {
  const std::size_t nr = height(), column = first % nr;
  kernels::transpose(values, static_cast<std::ptrdiff_t>(k), rows, k, values_.data() + (first - column) * k + column, nr);
}

void Panels<float>::multiply(Input x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k,
                             const float* bias, float* y) const {
  const kernels::KernelTable& kernel = kernels::best();
  for (const std::size_t last = i + rows; i < last;) {
    const Rows::Run run = x.run(i, last - i);
    kernel.gemm({.a = run.data,
                 .lda = run.step,
                 .panels = values_.data() + j / kernel.nr * kernels::panel_size(kernel.nr, k),
                 .panel_stride = kernels::panel_size(kernel.nr, k),
                 .bias = bias != nullptr ? bias + j : nullptr,
                 .c = y + j,
                 .ldc = static_cast<std::ptrdiff_t>(n),
                 .m = run.count,
                 .n = end - j,
                 .k = k});
    i += run.count;
    y += run.count * n;
  }
}

void Panels<std::int8_t>::allocate(std::size_t n, std::size_t k) {
  values_ = AlignedBytes(kernels::int8_packed_size(kernels::best().nr, kernels::best().int8.group, n, k));
  std::fill_n(values_.data(), values_.size(), std::int8_t{0});
  scales_.assign(n, 0.0F);
  sums_.assign(n, 0);
}

void Panels<std::int8_t>::set_rows(std::size_t first, std::span<const float> rows, std::size_t k) {
  if (rows.empty()) return;
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best();
  const unsigned workers = workers_for_panels(rows.size() / k, k, kQuantizeCost);
  std::vector<std::int8_t> buffers(workers * k);
  for_each_panel(first, rows.size() / k, workers, [&](std::size_t row, std::size_t count, unsigned worker) noexcept {
    std::int8_t* const q = buffers.data() + worker * k;
    for (const std::size_t end = row + count; row < end; ++row) {
      sums_[row] = kernel.quantize_weights(rows.data() + (row - first) * k, k, q, &scales_[row]);
      kernels::pack_int8_row(q, row, k, kernel.nr, kernel.int8.group, values_.data());
    }
  });
}

void Panels<std::int8_t>::unpack(float* weight, std::size_t n, std::size_t k) const {
  for (std::size_t j = 0; j < n; ++j) get_row(j, k, weight + j * k);
}

void Panels<std::int8_t>::get_row(std::size_t row, std::size_t k, float* values) const {
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best();
  std::array<std::int8_t, 1024> q;  // a multiple of every group
  for (std::size_t first = 0; first < k; first += q.size()) {
    const std::size_t count = std::min(q.size(), k - first);
    kernels::unpack_int8_row(values_.data(), row, k, kernel.nr, kernel.int8.group, first, count, q.data());
    kernel.dequantize_row(q.data(), scales_[row], values + first, count);
  }
}

void Panels<std::int8_t>::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows, std::size_t k) {
  const kernels::KernelTable& kernel = kernels::best();
  for (std::size_t at = 0; at < rows.size(); at += k, ++first) {
    const std::span<const std::int8_t> row = rows.subspan(at, k);
    sums_[first] = std::accumulate(row.begin(), row.end(), std::int32_t{0});
    kernels::pack_int8_row(row.data(), first, k, kernel.nr, kernel.int8.group, values_.data());
  }
}

void Panels<std::int8_t>::get_quantized_row(std::size_t row, std::size_t k, std::int8_t* q, float* scale) const {
  const kernels::KernelTable& kernel = kernels::best();
  kernels::unpack_int8_row(values_.data(), row, k, kernel.nr, kernel.int8.group, 0, k, q);
  *scale = scales_[row];
}

Panels<std::int8_t>::Input Panels<std::int8_t>::prepare(const Rows& x, const RowBlocks& blocks, Scratch& scratch) {
  const kernels::Int8Kernels& kernel = kernels::best().int8;
  const std::size_t m = x.count(), k = x.width(), words = kernels::int8_words(kernel.group, k);
  auto* const to = reinterpret_cast<std::int32_t*>(scratch.take(m, words));
  float* const scales = scratch.take(m);
  auto* const corrections = scratch.take_as<std::int32_t>(m);
  // In multiply-adds: a number is read twice and divided.
  parallel::run(m, parallel::workers_for(m, 4.0 * static_cast<double>(m * k)), [&](std::size_t i, unsigned) noexcept {
    const std::size_t block = blocks.of(i), first = blocks.begin(block);
    const kernels::Int8RowLayout place = kernels::int8_row_layout({blocks.begin(block + 1) - first, kernel.mr}, i - first, words);
    kernel.quantize_row(x[i], k, to + first * words + place.first, place.step, scales + i, corrections + i);
  });
  return {to, scales, corrections};
}

void Panels<std::int8_t>::multiply(const Input& x, std::size_t i, std::size_t rows, std::size_t j, std::size_t end, std::size_t n, std::size_t k,
                                   const float* bias, float* y) const {
  const kernels::KernelTable& kernel = kernels::best();
  kernel.int8.gemm({.a = x.words + i * kernels::int8_words(kernel.int8.group, k),
                    .scales = x.scales + i,
                    .corrections = x.corrections + i,
                    .panels = values_.data() + j / kernel.nr * kernels::int8_panel_size(kernel.nr, kernel.int8.group, k),
                    .weight_scales = scales_.data() + j,
                    .weight_sums = sums_.data() + j,
                    .bias = bias != nullptr ? bias + j : nullptr,
                    .c = y + j,
                    .ldc = n,
                    .m = rows,
                    .n = end - j,
                    .k = k});
}

}  // namespace attn::detail
