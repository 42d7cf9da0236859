// The two attentions of a decoder: causal self-attention over its own tokens, then cross-attention to an encoder's
// output with padding.
#include <algorithm>
#include <attn/attn.hpp>
#include <cstdio>
#include <limits>
#include <numeric>

int main() {
  const attn::Embedding embedding({.num_embeddings = 90, .embedding_dim = 16});
  attn::MultiHeadAttention self_attention({.embed_dim = 16, .num_heads = 4}), cross_attention({.embed_dim = 16, .num_heads = 4});
  cross_attention.initialize({.seed = 1});

  // Three sequences of 30 tokens, and three memories of 50 of which the first 50, 41 and 17 are real.
  const std::size_t lengths[] = {50, 41, 17};
  xt::xtensor<int, 2> tokens({3, 30}), memory_tokens({3, 50}), real({3, 50});
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 30; ++i) tokens(b, i) = 30 * b + i;
    for (int j = 0; j < 50; ++j) memory_tokens(b, j) = 20 * b + j, real(b, j) = static_cast<std::size_t>(j) < lengths[b];
  }
  const auto y = embedding.forward(tokens);        // (3,30,E)
  auto memory = embedding.forward(memory_tokens);  // (3,50,E)

  const auto own = self_attention.forward(y, {.is_causal = true}).output;
  const attn::AttentionOptions options{.key_padding_mask = attn::Mask::attend(real), .need_weights = true};
  const auto r = cross_attention.forward(own, memory, memory, options);
  const auto& w = *r.weights;
  std::printf("output (%zu,%zu,%zu)\n", r.output.shape(0), r.output.shape(1), r.output.shape(2));
  std::printf("weights (%zu,%zu,%zu,%zu)\n", w.shape(0), w.shape(1), w.shape(2), w.shape(3));
  for (std::size_t b = 0; b < 3; ++b) {
    const float* last = &w(b, 0, 29, 0);  // head 0, query 29
    const float largest = *std::max_element(last, last + 50), on_padding = std::accumulate(last + lengths[b], last + 50, 0.0F);
    std::printf("sequence %zu: largest weight %.4f, on padding %.4f\n", b, largest, on_padding);
  }

  // The content of the padding does not affect the result.
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t j = lengths[b]; j < 50; ++j) memory(b, j, 0) = std::numeric_limits<float>::quiet_NaN();
  std::printf("with NaN in the padding: %s\n", cross_attention.forward(own, memory, memory, options).output == r.output ? "the same" : "different");
}
