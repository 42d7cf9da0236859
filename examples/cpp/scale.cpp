// Shows why scores are divided by √D: products of two random vectors grow with the width, and large scores give one key
// all the weight.
#include <algorithm>
#include <attn/attn.hpp>
#include <cstdio>

int main() {
  for (const std::int64_t width : {4, 64, 1024}) {
    const attn::Embedding normal({.num_embeddings = 96, .embedding_dim = width});  // drawn from N(0,1)
    xt::xtensor<int, 1> first = xt::arange(32), last = xt::arange(32, 96);
    const auto q = normal.forward(first), k = normal.forward(last);  // (32,D), (64,D)

    std::printf("width %d:", static_cast<int>(width));
    for (const bool scaled : {false, true}) {
      attn::AttentionOptions options{.need_weights = true, .trace = {attn::TraceName::scores}};
      if (!scaled) options.scale = 1.0F;
      const auto r = attn::scaled_dot_product_attention(q, k, k, options);
      double variance = 0, largest = 0;
      for (const double score : r.trace->at(attn::TraceName::scores)) variance += score * score / (32 * 64);
      for (std::size_t i = 0; i < 32; ++i) largest += *std::max_element(&(*r.weights)(i, 0), &(*r.weights)(i, 0) + 64) / 32.0;
      std::printf(" %s variance %.2f, largest weight %.2f%s", scaled ? "scaled" : "plain", variance, largest, scaled ? "\n" : ";");
    }
  }
}
