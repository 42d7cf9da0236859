#include "attn/ops/cosine.hpp"

#include <cmath>
#include <cstddef>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

namespace {

float cosine(const kernels::KernelTable& kernel, const float* row, const float* target, double length, std::size_t n) {
  const double lengths = length * std::sqrt(static_cast<double>(kernel.dot(row, row, n)));
  return lengths == 0 ? 0.0F : static_cast<float>(static_cast<double>(kernel.dot(row, target, n)) / lengths);
}

double length_of(const kernels::KernelTable& kernel, const float* target, std::size_t n) {
  return std::sqrt(static_cast<double>(kernel.dot(target, target, n)));
}

}  // namespace

float cosine(const float* row, const float* target, std::int64_t E, bool reproducible) {
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best(reproducible);
  const auto n = static_cast<std::size_t>(E);
  return cosine(kernel, row, target, length_of(kernel, target, n), n);
}

void cosines(const Table& table, std::int64_t N, const float* target, std::int64_t E, float* result, Scratch& scratch) {
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best(table.is_quantized());
  const auto count = static_cast<std::size_t>(N), n = static_cast<std::size_t>(E);
  const double length = counts() ? 0 : length_of(kernel, target, n);
  const unsigned workers = parallel::workers_for(count, 2.0 * static_cast<double>(count) * static_cast<double>(n));
  float* const buffers = scratch.take(workers, n);
  parallel::run(count, workers,
                [&](std::size_t i, unsigned worker) noexcept { result[i] = cosine(kernel, table.row(i, buffers + worker * n), target, length, n); });
}

}  // namespace attn::detail
