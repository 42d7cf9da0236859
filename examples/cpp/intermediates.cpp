// Every intermediate result of multi-head attention by name: batch 2, length 32, width 200, 5 heads.
#include <attn/attn.hpp>
#include <cmath>
#include <cstdio>

int main() {
  const attn::Embedding embedding({.num_embeddings = 64, .embedding_dim = 200});
  const attn::MultiHeadAttention attention({.embed_dim = 200, .num_heads = 5});
  xt::xtensor<int, 2> ids({2, 32});
  for (int i = 0; i < 64; ++i) ids(i / 32, i % 32) = i;
  const auto x = embedding.forward(ids);  // (B,L,E)

  const auto r = attention.forward(x, {.is_causal = true, .trace = attn::Trace::all()});
  for (const auto& [name, tensor] : *r.trace)  // in the order of computation
    std::printf("%s %s\n", attn::to_string(name).data(), attn::to_string(attn::to_shape(tensor.shape())).c_str());

  const auto &scores = r.trace->at(attn::TraceName::scores), &masked = r.trace->at(attn::TraceName::masked_scores);
  const auto& weights = r.trace->at(attn::TraceName::weights);
  std::printf("batch 1, head 4, query 1: scores %.3f %.3f %.3f, ", scores(1, 4, 1, 0), scores(1, 4, 1, 1), scores(1, 4, 1, 2));
  std::printf("masked %.3f %.3f %s, ", masked(1, 4, 1, 0), masked(1, 4, 1, 1), masked(1, 4, 1, 2) == -INFINITY ? "-infinity" : "a number");
  std::printf("weights %.3f %.3f %.3f\n", weights(1, 4, 1, 0), weights(1, 4, 1, 1), weights(1, 4, 1, 2));

  // Some implementations divide by the square root of the full width instead of the head width.
  const auto other = attention.forward(x, {.is_causal = true, .scale = 1 / std::sqrt(200.0F), .need_weights = true});
  std::printf("with scale 1/√200: weights %.3f %.3f\n", (*other.weights)(1, 4, 1, 0), (*other.weights)(1, 4, 1, 1));
}
