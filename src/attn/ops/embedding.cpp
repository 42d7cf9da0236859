#include "attn/ops/embedding.hpp"

#include "attn/kernels/kernels.hpp"

namespace attn::detail {

void sum_embeddings(std::span<const EmbeddingRows> tables, std::size_t count, std::size_t width, float* y, parallel::TaskRef finish_row) {
  // A norm at the end costs about 16 multiply-adds per number.
  parallel::run(count, parallel::workers_for(count, 16 * static_cast<double>(count * width)), [&](std::size_t i, unsigned worker) noexcept {
    float* const row = y + i * width;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const auto& [table, ids] = tables[t];
      const std::size_t id = ids.empty() ? 0 : static_cast<std::size_t>(ids[i]);
      if (t == 0)
        table->get_row(id, row);
      else
        kernels::best().add_row(row, table->row(id, nullptr), row, width);
    }
    finish_row(i, worker);
  });
}

}  // namespace attn::detail
