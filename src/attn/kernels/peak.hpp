#pragma once

#include <cstddef>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

// Repeats x = a · b + x in registers: the speed of GEMM if loads, stores and partial tiles cost nothing. Not fused, it
// is x = x · a + b, because compilers would hoist a · b. 12 chains hide a latency of 6 cycles.
template <class Arch>
std::size_t multiply_adds(std::size_t count) {
  using F = Batch<Arch>;
  constexpr std::size_t kChains = 12, kPerRound = kChains * kLanes<Arch>;
  // Sums stay small: they converge to 1, or grow by the square of the seed.
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
