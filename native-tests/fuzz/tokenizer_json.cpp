#include "attn/io/tokenizer.hpp"
#include "fuzz.hpp"
#include "mutate.hpp"

namespace {

const std::vector<std::string> kTexts = {"", "Hello, world! [MASK] don't <mask>  x",
                                         "unaffable caf\u00e9 \u0130stanbul \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2",
                                         "\u4e2d\u6587\u3000\ud55c\uad6d\uc5b4 \u05d0\u05b7 \U0001f469\u200d\U0001f467\t\r\n", std::string(150, 'a')};

void check(const attn::Tokenizer& tokenizer, const attn::Encoding& encoding) {
  using attn::fuzz::require;
  const std::size_t length = encoding.input_ids.shape()[1];
  for (std::size_t b = 0; b < encoding.tokens.size(); ++b) {
    require(encoding.tokens[b].size() == length && encoding.offsets[b].size() == length, "tokens and offsets are as many as ids");
    tokenizer.decode({encoding.input_ids.data() + b * length, length}, b % 2 == 0);
    for (std::size_t i = 0; i < length; ++i) {
      require(encoding.input_ids(b, i) >= 0, "an id is not negative");
      if (encoding.offsets[b][i]) require(tokenizer.id_to_token(encoding.input_ids(b, i)).has_value(), "a token of the text is in the vocabulary");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto files = attn::fuzz::split({data, size}, 2);
  attn::fuzz::succeeds([&] {
    const attn::Tokenizer tokenizer =
        files[1].empty() ? attn::Tokenizer::parse(files[0]) : attn::Tokenizer::parse(files[0], files[1], "BertTokenizer");
    attn::fuzz::succeeds([&] { check(tokenizer, tokenizer.encode(kTexts)); });
    attn::fuzz::succeeds([&] { check(tokenizer, tokenizer.encode(kTexts, {.max_length = 8})); });
    attn::fuzz::succeeds([&] { check(tokenizer, tokenizer.encode_pairs({{kTexts[1], kTexts[3]}}, {.max_length = 9})); });
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  return attn::fuzz::mutate_parts(data, size, max_size, seed, 2, 2);
}
