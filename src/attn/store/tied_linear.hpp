#pragma once

#include "attn/store/scratch.hpp"
#include "attn/store/table.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// Computes y = x Wᵀ + b, x (rows,E) and y (rows,N) without gaps. W (N,E) is a lookup table: the decoder shares its
/// weight with the embedding (Press & Wolf 2017). It is packed in pieces, so there is no second copy of W; the result
/// has the same bits as that of PackedLinear.
void tied_linear(const Rows& x, const Table& weight, const float* bias, float* y, Scratch& scratch);

}  // namespace attn::detail
