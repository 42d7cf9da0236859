#pragma once

#include <cstdint>
#include <span>

#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// Adds each row of grad to the row of sums (N, grad's width) that its id names, in the order of ids; those with padding_idx are left out, -1
/// has nobody. Without ids all are row 0's.                                                     (torch.autograd of F.embedding)
void add_embedding_gradients(const Rows& grad, std::span<const std::int64_t> ids, std::int64_t padding_idx, float* sums);

}  // namespace attn::detail
