// Dropout: off until train(), then determined by the seed, on every machine and with any number of threads.
#include <attn/attn.hpp>
#include <cstdio>

int main() {
  // For a single call: each weight is dropped with probability 0.5, and the others are doubled.
  const xt::xtensor<float, 2> queries = xt::zeros<float>({2, 4});
  const xt::xtensor<float, 2> keys = xt::zeros<float>({8, 4});
  const auto r = attn::scaled_dot_product_attention(queries, keys, keys, {.dropout = 0.5F, .seed = 7, .need_weights = true});
  for (std::size_t i = 0; i < 2; ++i) {
    std::printf("weights of query %zu:", i);
    for (std::size_t j = 0; j < 8; ++j) std::printf(" %.2f", (*r.weights)(i, j));
    std::printf("\n");
  }

  // In a layer: on the attention weights, the attention's output, the hidden layer and the feed-forward output.
  attn::TransformerEncoderLayer layer({.d_model = 8, .nhead = 2, .dim_feedforward = 16, .dropout = 0.1F});
  const auto input = attn::Embedding({.num_embeddings = 50, .embedding_dim = 8}).forward(xt::xtensor<int, 1>{12, 7, 41, 3});  // (4,8)
  const auto run = [&] { return layer.forward(input).output; };
  const auto print = [](const char* name, const auto& y) { std::printf("%s: %.4f\n", name, y(0, 0)); };

  const auto plain = run();
  layer.train({.seed = 1});
  const auto first = run(), second = run();
  layer.train({.seed = 1});
  const auto again = run();
  layer.eval();
  print("eval", plain);
  print("train, first step", first);
  print("train, second step", second);
  std::printf("the same seed again gives the first step: %s\n", again == first ? "yes" : "no");
  std::printf("eval gives what it gave: %s\n", run() == plain ? "yes" : "no");
}
