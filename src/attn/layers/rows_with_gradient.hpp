#pragma once

#include <cstddef>

#include "attn/memory/scratch.hpp"

// Masked rows and padding have a gradient of 0 and may hold NaN and infinity.
namespace attn::detail {

bool has_gradient(const float* grad, std::size_t n);

/// Returns x (rows,width) with 0 in non-finite rows whose gradient (rows,n) is 0: a copy in the scratch if there are any. Takes
/// memory for the copy whether or not there are.
const float* rows_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t width, std::size_t rows, Scratch& scratch);

/// x (B,H,L,D), grad (B,L,H,n)
const float* heads_with_gradient(const float* grad, std::size_t n, const float* x, std::size_t B, std::size_t H, std::size_t L, std::size_t D,
                                 Scratch& scratch);

}  // namespace attn::detail
