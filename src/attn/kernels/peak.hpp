#pragma once

#include <cstddef>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

// x = a · b + x, over and over, in registers alone: what the GEMM could reach if loads, stores and its ends cost nothing.
// Without a fused instruction x = x · a + b, whose product no compiler can take out of the loop.
//
// 12 chains, so that the next step of one never waits for the last: 2 a cycle of up to 6 cycles each.
template <class Arch>
std::size_t multiply_adds(std::size_t count) {
  using F = Batch<Arch>;
  constexpr std::size_t kChains = 12, kPerRound = kChains * kLanes<Arch>;
  // A number that no compiler can see. Sums stay small: they begin at it and settle at 1, or grow by its square.
  volatile float seed = kFused ? 1e-9F : 0.5F;
  const F a(seed), b(seed);
  F x[kChains];
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kChains; ++i) x[i] = F(seed + static_cast<float>(i));
  const std::size_t rounds = (count + kPerRound - 1) / kPerRound;
#pragma GCC unroll 1
  for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) x[i] = kFused ? multiply_add<Arch>(a, b, x[i]) : multiply_add<Arch>(x[i], a, b);
  }
  F sum(0.0F);
  for (std::size_t i = 0; i < kChains; ++i) sum += x[i];
  seed = sum_of_lanes<Arch>(sum);
  return rounds * kPerRound;
}

}  // namespace attn::kernels
