#include "attn/ops/elementwise.hpp"

#include "attn/kernels/kernels.hpp"

namespace attn::detail {

void add_row(const float* x, const float* y, float* sum, std::size_t n) { kernels::best().add_row(x, y, sum, n); }

void multiply_row(const float* x, const float* y, float* product, std::size_t n) { kernels::best().multiply_row(x, y, product, n); }

}  // namespace attn::detail
