#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/budget.hpp"
#include "attn/io/tokenizer/unicode_table.hpp"

// What Hugging Face's tokenizers take characters for (unicode_table.hpp), and utf8proc where they agree with it.
namespace attn::detail {

/// A character of a text as it is after some normalisation, and the bytes [start, end) of the text that it stands for.
struct Char {
  char32_t code;
  std::uint32_t start, end;
};
using Chars = std::vector<Char>;

bool is_utf8(std::string_view text);
/// Nothing where the bytes are not UTF-8.
std::optional<Chars> decode_utf8(std::string_view text);
/// Of bytes that are.
std::size_t count_characters(std::string_view utf8);
std::u32string code_points(std::span<const Char> text);
std::u32string code_points(std::string_view utf8);
void append_utf8(std::string& text, char32_t code);
std::string utf8_of(std::span<const Char> text);

/// The bytes of one code point.
struct Utf8 {
  std::uint8_t bytes[4];
  std::uint8_t size;
  const std::uint8_t* begin() const { return bytes; }
  const std::uint8_t* end() const { return bytes + size; }
};
Utf8 utf8(char32_t code);

/// Whether a code point is in one of the sets of unicode_table.hpp, e.g. kLetter | kNumber.
bool is(char32_t code, std::uint32_t sets);
/// The number of its script as UnicodeScripts has them, 0 where it goes with any.
std::uint8_t script_of(char32_t code);

/// A character that takes the place of others: 0 of the next one of the text, 1 of none, so that it shares the place of the one before it, -n of the
/// next one and the n after it.
struct Change {
  char32_t code;
  std::int32_t change;
};
/// The new characters with the places of the old ones.
Chars transformed(std::span<const Char> text, std::span<const Change> changes);

/// Character by character: a final Σ becomes σ as any other does.
Chars lower_case(const Chars& text, Budget& budget);

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Unicode normalisation. What the library's older Unicode does not know stays as it is, and nothing moves past it.
Chars normalized(const Chars& text, Form form, Budget& budget);

}  // namespace attn::detail
