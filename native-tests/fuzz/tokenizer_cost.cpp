// A tokenizer.json, a zero byte and a text that is repeated: the cost must be proportional.
#include <optional>

#include "attn/io/tokenizer.hpp"
#include "cost.hpp"
#include "mutate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLongest = 1 << 15;
  const auto parts = attn::fuzz::split({data, size}, 2);
  const std::string once = attn::fuzz::text_of(parts[1]);
  std::string text;
  while (!once.empty() && text.size() + once.size() <= kLongest) text += once;
  attn::fuzz::succeeds([&] {
    const attn::fuzz::Cost reading;
    std::optional<attn::Tokenizer> tokenizer;
    attn::fuzz::succeeds([&] { tokenizer = attn::Tokenizer::parse(parts[0]); });
    reading.check(parts[0].size(), 10, 100, "reading a file costs in proportion to its bytes");
    if (!tokenizer) return;
    const attn::fuzz::Cost tokenizing;
    attn::fuzz::succeeds([&] { tokenizer->encode({text}); });
    tokenizing.check(text.size(), 2000, 200, "tokenizing costs in proportion to the text");
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  return attn::fuzz::mutate_parts(data, size, max_size, seed, 2, 1);
}
