#pragma once

#include <cstddef>

#include "attn/store/scratch.hpp"

// What is masked or padding has a gradient of 0, and may hold anything. Internal to the layers' gradients.
namespace attn::detail {

/// Whether any of them is not 0.
bool has_gradient(const float* grad, std::size_t n);

/// x (rows,width) without what is not finite in rows whose gradient (rows,n) is 0: x itself, or a copy in the scratch that is 0 there.
const float* rows_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t width, std::size_t rows, Scratch& scratch);

/// The same of heads x (B,H,L,D), whose gradients are grad (B,L,H,n).
const float* heads_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t B, std::size_t H, std::size_t L, std::size_t D,
                                 Scratch& scratch);

}  // namespace attn::detail
