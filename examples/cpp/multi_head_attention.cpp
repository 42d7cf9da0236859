// The first self-attention layer of a sentence encoder (all-MiniLM-L6-v2) on a real sentence: which words does one word
// attend to?
// Usage: multi_head_attention [FILE [HEAD [TOKEN]]]
#include <attn/attn.hpp>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>

int main(int argc, char** argv) try {
  const std::string tokens[] = {"[CLS]", "the", "student", "who", "got",         "the", "highest", "grade",     "in",   "the",
                                "class", "was", "awarded", "a",   "scholarship", "by",  "the",     "principal", "[SEP]"};
  const attn::StateDict file = attn::read_safetensors(argc > 1 ? argv[1] : ATTN_EXAMPLE_FILE);
  const std::size_t head = argc > 2 ? std::strtoul(argv[2], nullptr, 10) % 12 : 3, token = argc > 3 ? std::strtoul(argv[3], nullptr, 10) % 19 : 2;

  attn::MultiHeadAttention layer({.embed_dim = 384, .num_heads = 12});
  layer.load_state_dict(file, false);            // not strict: the file also contains the sentence
  const xt::xtensor<float, 3> x = file.at("x");  // (1,19,384), one row per token
  const auto result = layer.forward(x, {.need_weights = true});

  std::cout << "head " << head << ", \"" << tokens[token] << "\" looks at\n" << std::fixed << std::setprecision(3);
  for (std::size_t key = 0; key < 19; ++key) {
    const float weight = (*result.weights)(0, head, token, key);
    std::cout << std::setw(12) << tokens[key] << ' ' << weight << ' ' << std::string(static_cast<std::size_t>(60 * weight), '#') << '\n';
  }
} catch (const attn::Error& error) {
  std::cerr << attn::to_string(error.code()) << ": " << error.what() << '\n';
  return 1;
}
