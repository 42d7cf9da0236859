#pragma once

#include <cstdint>

#include "attn/ops/pooling.hpp"

namespace attn::detail {

/// Computes the gradient grad_x (B,L,E) of pool() from x (B,L,E) and the gradient of its result, grad (B,E), whose rows are `stride` apart.
/// Positions that were not pooled get 0, whatever grad is; that includes every position of a sequence with none left, unless the policy pooled all.
/// For max, the first position with the largest value gets the gradient; NaN counts as the largest, as in torch.
/// (torch.autograd of mean, max(dim).values)
void pool_backward(const float* grad, std::int64_t stride, const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling,
                   const MaskView* padding, FullyMasked fully_masked, float* grad_x, std::int64_t first = 0);

}  // namespace attn::detail
