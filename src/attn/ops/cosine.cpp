#include "attn/ops/cosine.hpp"

#include <cmath>
#include <cstddef>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn::detail {

void cosines(const float* rows, std::int64_t N, const float* target, std::int64_t E, float* cosine) {
  const kernels::KernelTable& kernel = kernels::best();
  const auto count = static_cast<std::size_t>(N), n = static_cast<std::size_t>(E);
  const double length = std::sqrt(static_cast<double>(kernel.dot(target, target, n)));
  const unsigned workers = parallel::workers_for(count, 2.0 * static_cast<double>(count) * static_cast<double>(n));
  parallel::run(count, workers, [&](std::size_t i, unsigned) noexcept {
    const float* row = rows + i * n;
    const double lengths = length * std::sqrt(static_cast<double>(kernel.dot(row, row, n)));
    cosine[i] = lengths == 0 ? 0.0F : static_cast<float>(static_cast<double>(kernel.dot(row, target, n)) / lengths);
  });
}

}  // namespace attn::detail
