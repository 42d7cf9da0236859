// Four functions that score a key for a query; each time the softmax of the scores weights the values.
#include <attn/attn.hpp>
#include <cstdio>

int main() {
  const xt::xtensor<float, 2> q{{1, 0, 1, 0}, {0, 1, 0, 1}};                                              // (L,D) = (2,4)
  const xt::xtensor<float, 2> k{{2, 0, 2, 0}, {0, 2, 0, 2}, {1, 1, 1, 1}};                                // (S,D) = (3,4)
  const xt::xtensor<float, 2> v{{1, 0}, {0, 1}, {0.5, 0.5}};                                              // (S,Dv) = (3,2)
  const xt::xtensor<float, 2> swap{{0, 1, 0, 0}, {1, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}};               // (Dq,Dk)
  const attn::AdditiveAttentionParams params{.query_weight = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 1}},  // (A,Dq) = (3,4)
                                             .key_weight = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, -1}},   // (A,Dk) = (3,4)
                                             .score_weight = {1, -1, 0.5}};                               // (A)

  const auto print = [](const char* name, const auto& r) {
    const auto& w = *r.weights;
    std::printf("%s: output (%zu,%zu), weights (%zu,%zu) of query 0", name, r.output.shape(0), r.output.shape(1), w.shape(0), w.shape(1));
    for (std::size_t j = 0; j < w.shape(1); ++j) std::printf(" %.4f", w(0, j));
    std::printf("\n");
  };
  print("dot", attn::scaled_dot_product_attention(q, k, v, {.scale = 1.0F, .need_weights = true}));  // q kᵀ
  print("scaled dot", attn::scaled_dot_product_attention(q, k, v, {.need_weights = true}));          // q kᵀ / √D
  print("general", attn::general_attention(q, k, v, swap, {.need_weights = true}));                  // q W kᵀ
  print("additive", attn::additive_attention(q, k, v, params, {.need_weights = true}));              // w · tanh(W_q q + W_k k)
}
