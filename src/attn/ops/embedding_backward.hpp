#pragma once

#include <cstdint>
#include <span>

#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// Adds row i of grad to row ids[i] (without ids: 0) of sums (N,width) in order, except padding_idx; -1 skips none.
/// (torch.autograd of F.embedding)
void add_embedding_gradients(const Rows& grad, std::span<const std::int64_t> ids, std::int64_t padding_idx, float* sums);

}  // namespace attn::detail
