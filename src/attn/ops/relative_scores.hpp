#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_plan.hpp"

// What disentangled attention adds to scores, a block of them at a time. Internal: the forward and the backward share it.
namespace attn::detail {

/// Scores of `rows` queries from `first` on with `count` keys from `key` on, a multiple of a panel's width.
struct RelativeBlock {
  const float* query = nullptr;
  std::ptrdiff_t query_row = 0;
  const float* key_panels = nullptr;  ///< packed keys from `key` on
  std::int64_t h = 0, first = 0;
  std::size_t rows = 0, key = 0, count = 0, D = 0;
  float scale = 1;
  float* scores = nullptr;  ///< rows ld apart; already scale · q kᵀ
  std::size_t ld = 0;
  float* scratch = nullptr;
  float *c2c = nullptr, *c2p = nullptr, *p2c = nullptr;  ///< where the parts go, rows trace_row apart, keys from 0 on; or null
  std::size_t trace_row = 0;
};
/// Floats that the scratch has for so many queries and keys.
std::size_t relative_scores_size(std::size_t rows, std::size_t keys, std::size_t nr);
/// Adds what relative positions give to scores. Of the table's rows those that occur lie side by side, so that each part is a product with few of
/// them, whose results are looked up.
void add_relative_scores(const kernels::KernelTable& kernel, const RelativePositions& relative, const RelativeBlock& block);

}  // namespace attn::detail
