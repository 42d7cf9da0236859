#pragma once

#include <cstddef>

#include "attn/kernels/activation.hpp"
#include "attn/kernels/simd.hpp"

namespace attn::kernels {

template <class Arch>
void additive_scores_row(const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight, float* scores,
                         std::size_t keys_count, std::size_t width, float alpha) {
  using F = Batch<Arch>;
  const auto term = [](const F& q, const F& k, const F& w) { return w * tanh<Arch>(q + k); };
  for (std::size_t j = 0; j < keys_count; ++j, keys += key_stride) scores[j] = alpha * sum_row<Arch>(width, term, query, keys, score_weight);
}

}  // namespace attn::kernels
