// Causal self-attention with one head and no output projection: no row of the output depends on a later token.
#include <algorithm>
#include <attn/attn.hpp>
#include <cstdio>

int main() {
  const attn::Embedding embedding({.num_embeddings = 50, .embedding_dim = 10});  // drawn from N(0,1), seed 0
  const attn::MultiHeadAttention head({.embed_dim = 10, .num_heads = 1, .head_dim = 4, .out_proj = false});
  const auto x = embedding.forward(xt::xtensor<int, 1>{12, 7, 40, 7, 3});         // (L,E) = (5,10)
  const auto changed = embedding.forward(xt::xtensor<int, 1>{12, 7, 40, 20, 3});  // another token 3

  const auto r = head.forward(x, {.is_causal = true, .need_weights = true});
  for (std::size_t i = 0; i < 5; ++i) {
    std::printf("weights of query %zu:", i);
    for (std::size_t j = 0; j < 5; ++j) std::printf(" %.4f", (*r.weights)(0, i, j));
    std::printf("\n");
  }

  const auto compare = [&](const char* name, const attn::AttentionOptions& options) {
    const auto before = head.forward(x, options).output, after = head.forward(changed, options).output;
    std::printf("%s: another token 3 changes rows:", name);
    for (std::size_t i = 0; i < 5; ++i)
      if (!std::equal(&before(i, 0), &before(i, 0) + 4, &after(i, 0))) std::printf(" %zu", i);
    std::printf("\n");
  };
  compare("causal", {.is_causal = true});
  const xt::xtensor<int, 2> tril{{1, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {1, 1, 1, 0, 0}, {1, 1, 1, 1, 0}, {1, 1, 1, 1, 1}};
  compare("tril mask", {.mask = attn::Mask::attend(tril)});
  compare("no mask", {});
}
