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

// Character classes of the Hugging Face tokenizers library (unicode_table.hpp), and utf8proc if it agrees with them.
namespace attn::detail {

/// A character after normalisation, and the bytes [start, end) of the original text that it represents.
struct Char {
  char32_t code;
  std::uint32_t start, end;
};
using Chars = std::vector<Char>;

bool is_utf8(std::string_view text);
/// Returns none if the bytes are not UTF-8.
std::optional<Chars> decode_utf8(std::string_view text);
/// The bytes must be UTF-8.
std::size_t count_characters(std::string_view utf8);
std::u32string code_points(std::span<const Char> text);
std::u32string code_points(std::string_view utf8);
void append_utf8(std::string& text, char32_t code);
std::string utf8_of(std::span<const Char> text);

struct Utf8 {
  std::uint8_t bytes[4];
  std::uint8_t size;
  const std::uint8_t* begin() const { return bytes; }
  const std::uint8_t* end() const { return bytes + size; }
};
Utf8 utf8(char32_t code);

/// Whether a code point is in one of the sets of unicode_table.hpp, e.g. kLetter | kNumber.
bool is(char32_t code, std::uint32_t sets);
/// Returns the number of its script in UnicodeScripts, 0 if it belongs to every script.
std::uint8_t script_of(char32_t code);

/// A new character and the old ones that it replaces: 0: the next one; 1: none, so it shares the offsets of the
/// previous one; -n: the next one and the n after it.
struct Change {
  char32_t code;
  std::int32_t change;
};
/// Returns the new characters with the offsets of the old ones.
Chars transformed(std::span<const Char> text, std::span<const Change> changes);

/// Lowercases each character separately: a final Σ becomes σ like any other.
Chars lower_case(const Chars& text, Budget& budget);

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Normalises a text. Characters that the older Unicode of the tokenizers library does not know are unchanged, and no
/// mark moves past them.
Chars normalized(const Chars& text, Form form, Budget& budget);

}  // namespace attn::detail
