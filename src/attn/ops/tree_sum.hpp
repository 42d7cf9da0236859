#pragma once

#include <span>

namespace attn::detail {

/// Adds runs of eight terms, then pairs of partial sums, the left one of a power of two of terms. Threads and
/// trailing zeros do not change a bit.
double tree_sum(std::span<const double> x);

}  // namespace attn::detail
