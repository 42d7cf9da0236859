// Attention of two queries over three keys.
#include <attn/attn.hpp>
#include <iostream>

int main() {
  const xt::xtensor<float, 2> q{{1, 0}, {0, 1}};          // (L,D)
  const xt::xtensor<float, 2> k{{4, 0}, {0, 4}, {2, 2}};  // (S,D)
  const xt::xtensor<float, 2> v{{10}, {20}, {30}};        // (S,Dv)
  const auto r = attn::scaled_dot_product_attention(q, k, v, {.need_weights = true});
  for (std::size_t i = 0; i < 2; ++i)
    std::cout << "query " << i << ": weights " << (*r.weights)(i, 0) << ' ' << (*r.weights)(i, 1) << ' ' << (*r.weights)(i, 2) << ", output "
              << r.output(i, 0) << '\n';
}
