#pragma once

#include <cstdint>
#include <span>

#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// Adds each row i of grad to row ids[i] of sums (N, grad's width), in the order of ids, skipping ids equal to padding_idx; -1 skips none.
/// Without ids, every row is added to row 0.                                                    (torch.autograd of F.embedding)
void add_embedding_gradients(const Rows& grad, std::span<const std::int64_t> ids, std::int64_t padding_idx, float* sums);

}  // namespace attn::detail
