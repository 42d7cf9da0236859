#pragma once

#include <cstddef>

#include "attn/kernels/simd.hpp"

namespace attn::kernels {

// Repeats x = a · b + x in registers only: the speed that GEMM could reach if loads, stores and partial tiles cost
// nothing. Without a fused instruction it repeats x = x · a + b, because compilers cannot hoist its product out of the
// loop.
//
// 12 chains, so that no step has to wait for the previous one of its chain: 2 per cycle with a latency of up to 6
// cycles.
template <class Arch>
std::size_t multiply_adds(std::size_t count) {
  using F = Batch<Arch>;
  constexpr std::size_t kChains = 12, kPerRound = kChains * kLanes<Arch>;
  // Unknown to the compiler. Sums stay small: they converge to 1, or grow by the square of the seed.
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
