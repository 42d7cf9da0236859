#pragma once

#include <cstdint>

// Sums and products of whole tensors. Internal: what layers put between the larger ops.
namespace attn::detail {

/// sum = x + y, rows of that width; any of the three may be the same.
void add(const float* x, const float* y, std::int64_t rows, std::int64_t width, float* sum);
/// product = x · y, element by element.
void multiply(const float* x, const float* y, std::int64_t rows, std::int64_t width, float* product);

}  // namespace attn::detail
