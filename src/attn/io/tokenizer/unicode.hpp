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

// Classes of Hugging Face tokenizers; utf8proc only if it agrees.
namespace attn::detail {

/// Represents the bytes [start, end) of the original text.
struct Char {
  char32_t code;
  std::uint32_t start, end;
};
using Chars = std::vector<Char>;

bool is_utf8(std::string_view text);
std::optional<Chars> decode_utf8(std::string_view text);
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

bool is(char32_t code, std::uint32_t sets);
/// 0 if the character belongs to every script.
std::uint8_t script_of(char32_t code);

/// `change`: 0 replaces one character; -n replaces n + 1; 1 replaces none and has the offsets of the previous one.
struct Change {
  char32_t code;
  std::int32_t change;
};
Chars transformed(std::span<const Char> text, std::span<const Change> changes);

/// A final Σ becomes σ like any other.
Chars lower_case(const Chars& text, Budget& budget);

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Keeps characters unknown to the tokenizers library's older Unicode; no mark moves past them.
Chars normalized(const Chars& text, Form form, Budget& budget);

}  // namespace attn::detail
