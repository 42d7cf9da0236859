#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_plan.hpp"

// Terms that disentangled attention adds to scores. Internal.
namespace attn::detail {

/// `key` is a multiple of a panel's width.
struct RelativeBlock {
  const float* query = nullptr;
  std::ptrdiff_t query_row = 0;
  const float* key_panels = nullptr;  ///< start at `key`
  std::int64_t h = 0, first = 0;
  std::size_t rows = 0, key = 0, count = 0, D = 0;
  float scale = 1;
  float* scores = nullptr;  ///< ld apart; already contain scale · q kᵀ
  std::size_t ld = 0;
  float* scratch = nullptr;
  float *c2c = nullptr, *c2p = nullptr, *p2c = nullptr;  ///< traces, rows trace_row apart; or null
  std::size_t trace_row = 0;
};
/// Floats in RelativeBlock::scratch.
std::size_t relative_scores_size(std::size_t rows, std::size_t keys, std::size_t nr);
/// The table rows of a block are contiguous: each term is one product with them and a lookup per score.
void add_relative_scores(const kernels::KernelTable& kernel, const RelativePositions& relative, const RelativeBlock& block);

}  // namespace attn::detail
