// Similar words and analogies with hand-made word vectors.
#include <attn/attn.hpp>
#include <cstdio>

int main() {
  const char* words[] = {"king", "queen", "man", "woman", "bart", "lisa", "dog", "puppy", "bread"};
  enum { king, queen, man, woman, bart, lisa, dog, puppy, bread };
  const attn::AnyTensor table{
      // royal, male, grown, human, simpson, animal, food
      {0.97, 0.42, 0.41, 0.80, 0.00, 0.00, 0.00},    // king
      {0.98, -0.38, 0.39, 0.81, 0.00, 0.00, 0.00},   // queen
      {0.02, 0.47, 0.45, 0.98, 0.03, 0.00, 0.00},    // man
      {0.03, -0.45, 0.44, 0.97, 0.02, 0.00, 0.00},   // woman
      {0.00, 0.45, -0.55, 0.70, 0.98, 0.00, 0.02},   // bart
      {0.02, -0.46, -0.53, 0.73, 0.97, 0.00, 0.01},  // lisa
      {0.00, 0.08, 0.30, 0.12, 0.02, 0.96, 0.00},    // dog
      {0.00, 0.06, -0.62, 0.13, 0.01, 0.93, 0.00},   // puppy
      {0.00, 0.00, 0.05, 0.04, 0.00, 0.02, 0.97},    // bread
  };
  attn::Embedding embedding({.num_embeddings = 9, .embedding_dim = 7});
  embedding.load_state_dict({{"weight", table}});

  const auto print = [&](const std::vector<attn::Neighbor>& found) {
    for (const auto& [id, similarity] : found) std::printf(" %s %.3f", words[id], similarity);
    std::printf("\n");
  };
  std::printf("king is nearest to");
  print(embedding.nearest(king, 3));
  std::printf("king and bread: %.3f\n", embedding.similarity(king, bread));
  std::printf("man : king :: woman :");
  print(embedding.analogy(man, king, woman, 1));
  std::printf("man : bart :: woman :");
  print(embedding.analogy(man, bart, woman, 1));
}
