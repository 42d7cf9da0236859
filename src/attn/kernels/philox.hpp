#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace attn::kernels {

inline constexpr int kPhiloxRounds = 10;

static constexpr void philox_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d, std::uint32_t key0, std::uint32_t key1) {
  const std::uint64_t product0 = std::uint64_t{0xD2511F53} * a, product1 = std::uint64_t{0xCD9E8D57} * c;
  a = static_cast<std::uint32_t>(product1 >> 32) ^ b ^ key0;
  b = static_cast<std::uint32_t>(product1);
  c = static_cast<std::uint32_t>(product0 >> 32) ^ d ^ key1;
  d = static_cast<std::uint32_t>(product0);
}

static constexpr void next_philox_key(std::uint32_t (&key)[2]) {
  key[0] += 0x9E3779B9;
  key[1] += 0xBB67AE85;
}

/// Philox-4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3")
static constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  std::uint32_t keys[2] = {key[0], key[1]};
  for (int round = 0; round < kPhiloxRounds; ++round, next_philox_key(keys))
    philox_round(counter[0], counter[1], counter[2], counter[3], keys[0], keys[1]);
  return counter;
}

/// In loops that compilers vectorize: xsimd lacks 64-bit products on some architectures.
template <class Arch>
void drop_row(float* values, std::size_t n, const std::uint32_t (&place)[3], const std::uint32_t (&key)[2], std::uint32_t threshold, float factor) {
  constexpr std::size_t kCounters = 16;
  for (std::size_t first = 0; first < n; first += 4 * kCounters) {
    std::uint32_t word[4][kCounters];
#pragma GCC unroll 1
    for (std::size_t c = 0; c < kCounters; ++c) {
      word[0][c] = static_cast<std::uint32_t>(first / 4 + c);
      for (std::size_t i = 0; i < 3; ++i) word[i + 1][c] = place[i];
    }
    std::uint32_t keys[2] = {key[0], key[1]};
#pragma GCC unroll 1
    for (int round = 0; round < kPhiloxRounds; ++round, next_philox_key(keys))
#pragma GCC unroll 1
      for (std::size_t c = 0; c < kCounters; ++c) philox_round(word[0][c], word[1][c], word[2][c], word[3][c], keys[0], keys[1]);
    std::uint32_t random[4 * kCounters];
#pragma GCC unroll 1
    for (std::size_t c = 0; c < kCounters; ++c)
      for (std::size_t i = 0; i < 4; ++i) random[4 * c + i] = word[i][c];
    const std::size_t count = n - first < 4 * kCounters ? n - first : 4 * kCounters;
    for (std::size_t i = 0; i < count; ++i) {
      const float kept = values[first + i] * factor;
      values[first + i] = random[i] >> 8 < threshold ? 0.0F : kept;
    }
  }
}

}  // namespace attn::kernels
