#include "attn/ops/embedding_backward.hpp"

#include <algorithm>

#include "attn/parallel/thread_pool.hpp"

namespace attn::detail {

void add_embedding_gradients(const Rows& grad, std::span<const std::int64_t> ids, std::int64_t padding_idx, float* sums) {
  // A task covers columns of all rows, so sums keep the order of the ids.
  constexpr std::size_t kColumns = 16;
  const std::size_t width = grad.width(), tasks = (width + kColumns - 1) / kColumns;
  const double cost = 4 * static_cast<double>(grad.count()) * static_cast<double>(width);
  parallel::run(tasks, parallel::workers_for(tasks, cost), [&](std::size_t task, unsigned) noexcept {
    const std::size_t first = task * kColumns, end = std::min(width, first + kColumns);
    for (std::size_t i = 0; i < grad.count(); ++i) {
      const std::int64_t id = ids.empty() ? 0 : ids[i];
      if (id == padding_idx) continue;
      const float* const from = grad[i];
      float* const sum = sums + static_cast<std::size_t>(id) * width;
      for (std::size_t e = first; e < end; ++e) sum[e] += from[e];
    }
  });
}

}  // namespace attn::detail
