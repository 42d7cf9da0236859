#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attn/memory/table.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn::detail {

/// Without ids, row 0 every time.
struct EmbeddingRows {
  const Table* table;
  std::span<const std::int64_t> ids;
};

/// Row i of y (count,width) is Σ row ids[i] of the tables, in order; only the first may be quantized. finish_row
/// follows each row.
void sum_embeddings(std::span<const EmbeddingRows> tables, std::size_t count, std::size_t width, float* y, parallel::TaskRef finish_row);

}  // namespace attn::detail
