#pragma once

#include <cstddef>

#include "attn/store/scratch.hpp"

// Masked rows and padding have a gradient of 0 and may hold any values, including NaN and infinity. Internal to the layers' gradients.
namespace attn::detail {

/// Returns whether any of the n values is not 0.
bool has_gradient(const float* grad, std::size_t n);

/// Returns x (rows,width) with 0 in place of non-finite rows whose gradient (rows,n) is 0: x itself if there are none, otherwise a copy in the
/// scratch.
const float* rows_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t width, std::size_t rows, Scratch& scratch);

/// As above for heads x (B,H,L,D) with gradients grad (B,L,H,n).
const float* heads_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t B, std::size_t H, std::size_t L, std::size_t D,
                                 Scratch& scratch);

}  // namespace attn::detail
