#include "attn/ops/elementwise.hpp"

#include <cstddef>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn::detail {
namespace {

using Row = void (*)(const float*, const float*, float*, std::size_t);

void each_row(Row row, const float* x, const float* y, std::int64_t rows, std::int64_t width, float* result) {
  const auto count = static_cast<std::size_t>(rows), n = static_cast<std::size_t>(width);
  if (count == 0 || n == 0) return;
  const unsigned workers = parallel::workers_for(count, static_cast<double>(count) * static_cast<double>(n));
  parallel::run(count, workers, [&](std::size_t i, unsigned) { row(x + i * n, y + i * n, result + i * n, n); });
}

}  // namespace

void add(const float* x, const float* y, std::int64_t rows, std::int64_t width, float* sum) {
  each_row(kernels::best().add_row, x, y, rows, width, sum);
}

void multiply(const float* x, const float* y, std::int64_t rows, std::int64_t width, float* product) {
  each_row(kernels::best().multiply_row, x, y, rows, width, product);
}

}  // namespace attn::detail
