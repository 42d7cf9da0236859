#pragma once

#include <cstddef>

// Sums and products of rows. Internal: what layers put between the larger ops.
namespace attn::detail {

/// sum = x + y, n values; any of the three may be the same.
void add_row(const float* x, const float* y, float* sum, std::size_t n);
/// product = x · y, element by element.
void multiply_row(const float* x, const float* y, float* product, std::size_t n);

}  // namespace attn::detail
