#pragma once

#include <span>

namespace attn::detail {

/// Returns Σ x, summed in a tree that depends only on positions: runs of eight terms sequentially, then pairs of partial sums, of which the left
/// has a power of two of terms. Threads and trailing zeros do not change a bit of the result.
double tree_sum(std::span<const double> x);

}  // namespace attn::detail
