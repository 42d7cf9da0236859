// A sentiment classifier with hand-made weights: words get positions, attention looks one word back for a "not", the
// feed-forward network inverts the sentiment of that word, and the mean over the words is the result.
#include <attn/attn.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>

int main() {
  const std::map<std::string, int> words{{"the", 1},  {"film", 2},  {"is", 3},  {"but", 4},   {"not", 5},
                                         {"good", 6}, {"great", 7}, {"bad", 8}, {"boring", 9}};
  // Sinusoids of width 8 encode positions in columns 0 to 3; columns 4 and 6 are close to 0 (used for sentiment,
  // negation), 5 and 7 close to 1.
  attn::AnyTensor table = xt::zeros<float>({10, 8});  // row 0 is padding
  table(5, 6) = 1, table(6, 4) = 1, table(7, 4) = 2, table(8, 4) = -1, table(9, 4) = -1.5F;

  attn::Embedding embedding({.num_embeddings = 10, .embedding_dim = 8, .padding_idx = 0});
  embedding.load_state_dict({{"weight", table}});

  const attn::TransformerEncoderLayerOptions layer_options{
      .d_model = 8, .nhead = 1, .dim_feedforward = 2, .norm_first = true, .bias = false, .norm = attn::NormKind::rms_norm};
  attn::TransformerClassifier model({.encoder = {.layer = layer_options, .num_layers = 1}, .num_classes = 2, .pooling = attn::Pooling::mean});
  attn::StateDict state = model.state_dict();
  for (auto& [name, tensor] : state)
    if (name.find("norm") == std::string::npos) tensor.fill(0);  // norms are initialised with 1
  const std::string layer = "encoder.layers.0.";
  auto &in_proj = state.at(layer + "self_attn.in_proj_weight"), &out_proj = state.at(layer + "self_attn.out_proj.weight");
  auto &linear1 = state.at(layer + "linear1.weight"), &linear2 = state.at(layer + "linear2.weight"), &head = state.at("classifier.weight");
  for (int i = 0; i < 4; i += 2) {  // query: the position rotated back by one word; key: the position itself
    const float angle = i == 0 ? 1.0F : 0.1F, sin = 50 * std::sin(angle), cos = 50 * std::cos(angle);
    in_proj(i, i) = in_proj(i + 1, i + 1) = cos, in_proj(i, i + 1) = -sin, in_proj(i + 1, i) = sin;
    in_proj(8 + i, i) = in_proj(9 + i, i + 1) = 1;
  }
  in_proj(16 + 6, 6) = out_proj(6, 6) = 1;  // value: the negation, added to the word that attends
  // relu(± sentiment + 4 negation - 2): both 0 unless negated; then their difference is twice the sentiment
  linear1(0, 4) = 1, linear1(1, 4) = -1, linear1(0, 6) = linear1(1, 6) = 4, linear1(0, 7) = linear1(1, 7) = -2;
  linear2(4, 0) = -0.8F, linear2(4, 1) = 0.8F;
  head(0, 4) = -4, head(1, 4) = 4;
  model.load_state_dict(state);

  const char* texts[] = {"the film is great", "the film is not great", "not bad", "boring but not bad"};
  xt::xtensor<int, 2> ids = xt::zeros<int>({4, 5});
  for (int b = 0; b < 4; ++b) {
    std::istringstream text(texts[b]);
    int i = 0;
    for (std::string word; text >> word; ++i) ids(b, i) = words.at(word);
  }
  const xt::xtensor<float, 3> x = embedding.forward(ids) + attn::sinusoidal_positions(5, 8);
  const xt::xtensor<float, 2> logits = model.forward(x, {.key_padding_mask = attn::Mask::attend(ids)}).logits;  // id 0 is padding
  const auto probabilities = attn::softmax(logits);
  for (std::size_t b = 0; b < 4; ++b) std::printf("%.3f positive: %s\n", probabilities(b, 1), texts[b]);
}
