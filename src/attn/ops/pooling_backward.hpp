#pragma once

#include <cstdint>

#include "attn/ops/pooling.hpp"

namespace attn::detail {

/// grad_x (B,L,E) of pool(), for grad (B,E) with rows `stride` apart (torch.autograd of mean, max(dim).values).
/// Positions that were not pooled get 0, whatever grad is. For max, the first largest value gets the gradient; NaN
/// counts as the largest, as in torch.
void pool_backward(const float* grad, std::int64_t stride, const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling,
                   const MaskView* padding, FullyMasked fully_masked, float* grad_x, std::int64_t first = 0);

}  // namespace attn::detail
