#pragma once

#include "attn/store/scratch.hpp"
#include "attn/store/table.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

/// y = x Wᵀ + b, x (rows,E) and y (rows,N) without gaps, W (N,E) a table that is looked up in elsewhere: a decoder that shares its weight with the
/// embedding (Press & Wolf 2017). It is packed a piece at a time, so that there is no second copy of it; the bits are those of a PackedLinear.
void tied_linear(const Rows& x, const Table& weight, const float* bias, float* y, Scratch& scratch);

}  // namespace attn::detail
