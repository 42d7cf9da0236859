// Attention alone ignores the order of tokens. Three ways to encode positions: sinusoids, rotation, ALiBi.
#include <attn/attn.hpp>
#include <cstdio>

int main() {
  const attn::Embedding embedding({.num_embeddings = 50, .embedding_dim = 8});
  const attn::MultiHeadAttention attention({.embed_dim = 8, .num_heads = 2});
  const auto x = embedding.forward(xt::xtensor<int, 1>{12, 7, 41, 3});  // (L,E) = (4,8)
  const xt::xtensor<float, 2> positions = attn::sinusoidal_positions(4, 8);
  std::printf("sinusoids of position 1:");
  for (std::size_t i = 0; i < 8; ++i) std::printf(" %.3f", positions(1, i));
  std::printf("\n");

  // Reverses the tokens: is each output still the same?
  const auto reversed = [](const auto& t) { return xt::xtensor<float, 2>(xt::flip(t, 0)); };
  const auto difference = [&](const xt::xtensor<float, 2>& forwards, const xt::xtensor<float, 2>& backwards) {
    return xt::amax(xt::abs(attention.forward(forwards).output - reversed(attention.forward(backwards).output)))();
  };
  std::printf("reversed, without positions: %.4f\n", difference(x, reversed(x)));
  std::printf("reversed, with sinusoids: %.4f\n", difference(x + positions, reversed(x) + positions));

  // Rotation: a score depends on the distance of query and key, not on their positions.
  const xt::xtensor<float, 2> q{{1, 2, 3, 4}}, k{{4, 3, 2, 1}};
  const auto score = [&](std::int64_t i, std::int64_t j) {
    return xt::sum(attn::apply_rotary(q, {.offset = i}) * attn::apply_rotary(k, {.offset = j}))();
  };
  std::printf("rotary: score at 7 and 5 %.4f, at 107 and 105 %.4f, at 7 and 6 %.4f\n", score(7, 5), score(107, 105), score(7, 6));

  // ALiBi: with equal scores, near keys get more weight.
  const xt::xtensor<float, 4> equal = xt::zeros<float>({1, 2, 4, 8});  // (B,H,L,D)
  const auto near = attn::Mask::additive(attn::alibi_bias(2, 4));
  const auto r = attn::scaled_dot_product_attention(equal, equal, equal, {.mask = near, .need_weights = true});
  for (std::size_t h = 0; h < 2; ++h) {
    std::printf("alibi, head %zu, query 3:", h);
    for (std::size_t j = 0; j < 4; ++j) std::printf(" %.4f", (*r.weights)(0, h, 3, j));
    std::printf("\n");
  }
}
