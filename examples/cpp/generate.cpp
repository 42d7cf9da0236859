// Continues a text with a language model and prints it while the model writes: generate MODEL TEXT
#include <attn/attn.hpp>
#include <cstdio>
#include <iostream>
#include <string>

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("usage: generate MODEL TEXT\n\nMODEL is a folder or a .gguf file of a language model.\n", stderr);
    return 2;
  }
  try {
    const auto model = attn::TextModel::load(words[1]);
    const std::string text = words[2];
    std::cout << text;
    const auto print = [](const attn::GeneratedToken& token) {
      std::cout << token.text << std::flush;
      return true;  // false ends the text
    };
    const attn::GeneratedText made = model.generate(text, {.max_new_tokens = 24, .on_token = print});
    std::cout << "\n\n" << attn::kFinishReasonNames[static_cast<std::size_t>(made.finish_reason)] << " after " << made.ids.size() << " tokens\n";
    std::printf("perplexity of your text: %.1f\n", model.score_tokens(text).perplexity);
  } catch (const attn::Error& error) {
    std::cerr << "generate: " << error.what() << '\n';
    return 1;
  }
}
