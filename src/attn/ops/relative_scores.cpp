#include "attn/ops/relative_scores.hpp"

#include <algorithm>

namespace attn::detail {
namespace {

/// Table row r times key j is data[(r - lowest) · by_row + j · by_key].
struct Products {
  const float* data;
  std::ptrdiff_t lowest, by_row, by_key;
};

void add(float* to, const Products& products, const std::int32_t* rows, std::size_t count) {
  std::ptrdiff_t at = -products.lowest * products.by_row;
  for (std::size_t j = 0; j < count; ++j, --rows, at += products.by_key) to[j] += products.data[at + *rows * products.by_row];
}

}  // namespace

std::size_t relative_scores_size(std::size_t rows, std::size_t keys, std::size_t nr) { return std::max(rows * (rows + keys + nr), (rows + nr) * nr); }

void add_relative_scores(const kernels::KernelTable& kernel, const RelativePositions& relative, const RelativeBlock& block) {
  if (block.count == 0) return;
  const std::size_t rows = block.rows, count = block.count, D = block.D, nr = kernel.nr, width = static_cast<std::size_t>(relative.width);
  const std::size_t head = static_cast<std::size_t>(block.h) * D;
  for (std::size_t r = 0; r < rows && block.c2c != nullptr; ++r) std::copy_n(block.scores + r * block.ld, count, block.c2c + r * block.trace_row);
  const std::int64_t last = block.first + static_cast<std::int64_t>(rows) - 1;
  const auto row_of = [&](std::int64_t query, std::size_t key) {
    return static_cast<std::size_t>(relative.rows[query - static_cast<std::int64_t>(key)]);
  };
  // Keys [from, from + n); products of consecutive queries are by_query apart.
  const auto add_to = [&](float* shown, std::size_t from, std::size_t n, Products products, std::size_t by_query) {
    for (std::size_t r = 0; r < rows; ++r, products.data += by_query) {
      const std::int32_t* const places = relative.rows + (block.first + static_cast<std::int64_t>(r) - static_cast<std::int64_t>(from));
      float* const scores = block.scores + r * block.ld + (from - block.key);
      if (shown == nullptr) {
        add(scores, products, places, n);
        continue;
      }
      float* const part = shown + r * block.trace_row + from;
      std::fill_n(part, n, 0.0F);
      add(part, products, places, n);
      for (std::size_t j = 0; j < n; ++j) scores[j] += part[j];
    }
  };
  if (relative.key_panels != nullptr) {
    const std::size_t lowest = row_of(block.first, block.key + count - 1) / nr * nr, n = row_of(last, block.key) + 1 - lowest;
    const std::size_t stride = kernels::panel_size(nr, width);
    kernel.gemm({.a = block.query,
                 .lda = block.query_row,
                 .panels = relative.key_panels + lowest / nr * stride + head * nr,
                 .panel_stride = stride,
                 .c = block.scratch,
                 .ldc = static_cast<std::ptrdiff_t>(n),
                 .m = rows,
                 .n = n,
                 .k = D,
                 .alpha = block.scale});
    add_to(block.c2p, block.key, count, {block.scratch, static_cast<std::ptrdiff_t>(lowest), 1, 0}, n);
  }
  if (relative.queries == nullptr) return;
  const std::size_t panel_size = kernels::panel_size(nr, D);
  const float* panels = block.key_panels;
  // One panel of keys at a time: more need more table rows, most of which few keys use.
  for (std::size_t from = block.key; from < block.key + count; from += nr, panels += panel_size) {
    const std::size_t n = std::min(nr, block.key + count - from), lowest = row_of(block.first, from + n - 1);
    kernel.gemm({.a = relative.queries + lowest * width + head,
                 .lda = static_cast<std::ptrdiff_t>(width),
                 .panels = panels,
                 .panel_stride = panel_size,
                 .c = block.scratch,
                 .ldc = static_cast<std::ptrdiff_t>(n),
                 .m = row_of(last, from) + 1 - lowest,
                 .n = n,
                 .k = D,
                 .alpha = block.scale});
    add_to(block.p2c, from, n, {block.scratch, static_cast<std::ptrdiff_t>(lowest), static_cast<std::ptrdiff_t>(n), 1}, 0);
  }
}

}  // namespace attn::detail
