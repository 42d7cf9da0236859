#include <algorithm>
#include <fstream>
#include <iterator>

#include "attn/io/tokenizer.hpp"
#include "fuzz.hpp"

namespace {

using attn::fuzz::require;

const attn::Tokenizer& tokenizer() {
  static const attn::Tokenizer read = [] {
    std::ifstream file(ATTN_FUZZ_TOKENIZER, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    require(!bytes.empty(), ATTN_FUZZ_TOKENIZER " is there");
    return attn::Tokenizer::parse({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }();
  return read;
}

bool starts_character(const std::string& text, std::int64_t at) {
  return at == static_cast<std::int64_t>(text.size()) || (static_cast<unsigned char>(text[static_cast<std::size_t>(at)]) & 0xC0) != 0x80;
}

/// Reordered, so a token that begins with one may begin after its end.
bool has_spacing_marks(const std::string& text) {
  return text.find("\xe3\x80\xae") != text.npos || text.find("\xe3\x80\xaf") != text.npos || text.find("\xf0\x9d\x85") != text.npos;
}

void check_offsets(const std::string& text, const attn::Encoding& encoding) {
  std::int64_t start = 0, end = 0;
  for (const auto& offsets : encoding.offsets[0]) {
    if (!offsets) continue;
    const auto [first, last] = *offsets;
    require(first >= 0 && last >= 0 && std::max(first, last) <= static_cast<std::int64_t>(text.size()), "offsets are within the text");
    require(starts_character(text, first) && starts_character(text, last), "offsets lie between characters");
    if (has_spacing_marks(text)) continue;
    require(first <= last, "a token ends behind its start");
    require(first >= start && last >= end, "offsets rise");
    std::tie(start, end) = std::pair(first, last);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = attn::fuzz::text_of({data, size});
  attn::Encoding encoding;
  if (!attn::fuzz::succeeds([&] { encoding = tokenizer().encode({text}); })) return 0;
  const std::size_t length = encoding.tokens[0].size();
  require(length >= 2, "special tokens are there");
  for (std::size_t i = 0; i < length; ++i) require(tokenizer().id_to_token(encoding.input_ids(0, i)).has_value(), "ids are in the vocabulary");
  check_offsets(text, encoding);

  const auto most = static_cast<std::int64_t>(2 + size % 7);
  const attn::Encoding cut = tokenizer().encode({text}, {.max_length = most});
  require(static_cast<std::int64_t>(cut.tokens[0].size()) <= most, "max_length holds");
  require(cut.truncated[0] == (static_cast<std::int64_t>(length) > most), "truncated says whether it was cut");
  require(std::equal(cut.tokens[0].begin(), cut.tokens[0].end() - 1, encoding.tokens[0].begin()), "a text that was cut begins as the whole");

  const attn::Encoding pair = tokenizer().encode_pairs({{text, text}});
  require(pair.tokens[0].size() == 2 * length - 1, "a pair has the tokens of both");
  require(std::equal(encoding.tokens[0].begin() + 1, encoding.tokens[0].end(), pair.tokens[0].begin() + static_cast<std::ptrdiff_t>(length)),
          "the second of a pair has the tokens of the text");
  return 0;
}
