#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attn/parallel/thread_pool.hpp"
#include "attn/store/table.hpp"

namespace attn::detail {

/// A table of rows and which of them are wanted; none: row 0 each time.
struct EmbeddingRows {
  const Table* table;
  std::span<const std::int64_t> ids;
};

/// y (count,width): row i is the sum of every table's row ids[i], in the order of the tables, of which the first alone may be quantized. finish_row
/// is called for each when it is written.
void sum_embeddings(std::span<const EmbeddingRows> tables, std::size_t count, std::size_t width, float* y, parallel::TaskRef finish_row);

}  // namespace attn::detail
