// An encoder layer with a classifier, with attention to all positions, to some (B,1,1,S), or to different ones per
// query (B,S,S).
#include <attn/attn.hpp>
#include <cstdio>
#include <cstdlib>

int main() {
  const attn::TransformerClassifier model(
      {.encoder = {.layer = {.d_model = 10, .nhead = 1, .dim_feedforward = 10}, .num_layers = 1}, .num_classes = 2});
  const attn::Embedding embedding({.num_embeddings = 50, .embedding_dim = 10});
  const auto x = embedding.forward(xt::xtensor<int, 2>{{12, 7, 41, 7, 3, 30, 22, 8, 17, 46}});  // (1,10,10)

  const auto print = [&](const char* name, const std::optional<attn::Mask>& mask) {
    const auto r = model.forward(x, {.mask = mask, .output_attentions = true});
    std::printf("%s: keys seen", name);
    for (std::size_t i = 0; i < 10; ++i) {
      int seen = 0;
      for (std::size_t j = 0; j < 10; ++j) seen += r.attentions->at(0)(0, 0, i, j) != 0;
      std::printf(" %d", seen);
    }
    std::printf(", logits of the first %.4f %.4f\n", r.logits(0, 0, 0), r.logits(0, 0, 1));
  };
  print("no mask", std::nullopt);

  const xt::xtensor<int, 4> first_seven{{{{1, 1, 1, 1, 1, 1, 1, 0, 0, 0}}}};
  print("(B,1,1,S)", attn::Mask::attend(first_seven));

  xt::xtensor<int, 3> neighbors = xt::zeros<int>({1, 10, 10});
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 10; ++j) neighbors(0, i, j) = std::abs(i - j) <= 2;
  print("(B,S,S)", attn::Mask::attend(neighbors));

  // With pooling, logits have one row per sequence; the mean excludes padding.
  const attn::TransformerClassifier pooled(
      {.encoder = {.layer = {.d_model = 10, .nhead = 1, .dim_feedforward = 10}, .num_layers = 1}, .num_classes = 2, .pooling = attn::Pooling::mean});
  const xt::xtensor<int, 2> padding{{1, 1, 1, 1, 1, 1, 1, 0, 0, 0}};
  const auto logits = pooled.forward(x, {.key_padding_mask = attn::Mask::attend(padding)}).logits;  // (1,2)
  std::printf("mean of the first seven: logits %.4f %.4f\n", logits(0, 0), logits(0, 1));
}
