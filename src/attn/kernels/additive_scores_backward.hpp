#pragma once

#include <cstddef>

#include "attn/kernels/activation.hpp"
#include "attn/kernels/simd.hpp"

// With t = tanh(query + key) and u = grad · score_weight · (1 - t²): dquery += u, dkey += u, dscore_weight += grad · t
namespace attn::kernels {

template <class Arch>
void additive_scores_backward_row(const float* grad, const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight,
                                  float* grad_query, float* grad_keys, float* grad_score_weight, std::size_t keys_count, std::size_t width) {
  using F = Batch<Arch>;
  const auto add = [](const F& sum, const F& term) { return sum + term; };
  for (std::size_t j = 0; j < keys_count; ++j, keys += key_stride, grad_keys += width) {
    if (grad[j] == 0) continue;
    const F dy(grad[j]);
    // In parts, so that each tanh is computed once.
    constexpr std::size_t kPart = 64;
    float t[kPart], u[kPart];
    for (std::size_t first = 0; first < width; first += kPart) {
      const std::size_t n = width - first < kPart ? width - first : kPart;
      map_row<Arch>(t, n, [](const F& q, const F& k) { return tanh<Arch>(q + k); }, query + first, keys + first);
      map_row<Arch>(u, n, [&](const F& w, const F& y) { return (dy * w) * ((F(1.0F) - y) * (F(1.0F) + y)); }, score_weight + first, t);
      map_row<Arch>(grad_query + first, n, add, grad_query + first, u);
      map_row<Arch>(grad_keys + first, n, add, grad_keys + first, u);
      map_row<Arch>(grad_score_weight + first, n, [&](const F& sum, const F& y) { return sum + dy * y; }, grad_score_weight + first, t);
    }
  }
}

}  // namespace attn::kernels
