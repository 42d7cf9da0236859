// Token-by-token decoding: each call computes one row and reuses the keys and values of the previous call.
#include <algorithm>
#include <attn/attn.hpp>
#include <cstdio>
#include <utility>
#include <vector>

int main() {
  const attn::Embedding words({.num_embeddings = 50, .embedding_dim = 16});  // drawn from N(0,1), seed 0
  const attn::MultiHeadAttention layer({.embed_dim = 16, .num_heads = 4, .num_key_value_heads = 2, .rotary = attn::RotaryOptions{}});
  const attn::AttentionOptions options{.is_causal = true, .output_present = true};
  const auto embed = [&](const std::vector<int>& ids) { return words.forward(xt::xtensor<int, 1>(xt::adapt(ids))); };
  /// Returns the token whose vector is nearest to the last row of (L,E).
  const auto next = [&](const xt::xtensor<float, 2>& rows) {
    const attn::TensorView last(&rows(rows.shape(0) - 1, 0), {16});
    return static_cast<int>(words.nearest(last, 1)[0].id);
  };

  std::vector<int> tokens{12, 7, 40};
  auto result = layer.forward(embed(tokens), options);  // the prompt in one call
  while (tokens.size() < 9) {
    tokens.push_back(next(result.output));
    attn::AttentionOptions one = options;
    one.past = attn::KeyValueView(result.present->key, result.present->value);  // a view of the previous result
    result = layer.forward(embed({tokens.back()}), one);                        // (1,E)
  }
  std::printf("tokens:");
  for (const int token : tokens) std::printf(" %d", token);
  const auto& [keys, values] = *result.present;  // by head, after rotation
  std::printf("\nkeys kept: (%zu,%zu,%zu), values (%zu,%zu,%zu)\n", keys.shape(0), keys.shape(1), keys.shape(2), values.shape(0), values.shape(1),
              values.shape(2));

  const auto whole = layer.forward(embed(tokens), options);
  const auto yes = [](bool same) { return same ? "yes" : "no"; };
  std::printf("the last row as if all had been computed at once: %s\n",
              yes(std::equal(result.output.begin(), result.output.end(), &whole.output(8, 0))));
  std::printf("the keys, too: %s\n", yes(keys == whole.present->key));

  // A further row with a window of itself and the 2 rows before it.
  const auto windowed =
      layer.forward(embed({3}), {.need_weights = true, .window = attn::Window{.left = 2, .right = 0}, .past = attn::KeyValueView(keys, values)});
  std::printf("weights of head 0 with a window:");
  for (std::size_t key = 0; key < 10; ++key) std::printf(" %.3f", (*windowed.weights)(0, 0, key));
  std::printf("\n");
}
