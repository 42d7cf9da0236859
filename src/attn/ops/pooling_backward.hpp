#pragma once

#include <cstdint>

#include "attn/ops/pooling.hpp"

namespace attn::detail {

/// Gradients of pool(): grad (B,E), rows of it `stride` apart, that of what was pooled from x (B,L,E) -> grad_x (B,L,E). Positions that were
/// not pooled get 0, whatever grad is; where nothing was left of a sequence that is all of them, unless the policy pooled them all. Of max the first
/// position with the largest number gets it, and one with NaN before all, as in torch.           (torch.autograd of mean, max(dim).values)
void pool_backward(const float* grad, std::int64_t stride, const float* x, std::int64_t B, std::int64_t L, std::int64_t E, Pooling pooling,
                   const MaskView* padding, FullyMasked fully_masked, float* grad_x, std::int64_t first = 0);

}  // namespace attn::detail
