#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attn/parallel/thread_pool.hpp"
#include "attn/store/table.hpp"

namespace attn::detail {

/// A table and the ids of the rows to look up; without ids, row 0 every time.
struct EmbeddingRows {
  const Table* table;
  std::span<const std::int64_t> ids;
};

/// Sets row i of y (count,width) to the sum of row ids[i] of every table, in the order of the tables; only the first table may be quantized.
/// Calls finish_row for each row once it is written.
void sum_embeddings(std::span<const EmbeddingRows> tables, std::size_t count, std::size_t width, float* y, parallel::TaskRef finish_row);

}  // namespace attn::detail
