#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What Hugging Face's tokenizers take characters for (unicode_ranges.hpp), and utf8proc where they agree with it.
namespace attn::detail {

/// A character of a text as it is after some normalisation, and the bytes [start, end) of the text that it stands for.
struct Char {
  char32_t code;
  std::uint32_t start, end;
};
using Chars = std::vector<Char>;

/// Nothing where the bytes are not UTF-8.
std::optional<Chars> decode_utf8(std::string_view text);
std::u32string code_points(const Chars& text);
void append_utf8(std::string& text, char32_t code);

/// What clean_text of a BertNormalizer takes out.
bool is_removed(char32_t code);
bool is_white_space(char32_t code);
/// What handle_chinese_chars puts spaces around.
bool is_chinese(char32_t code);
/// What strip_accents takes out.
bool is_nonspacing_mark(char32_t code);
bool is_punctuation(char32_t code);
/// \w of Rust's regular expressions.
bool is_word(char32_t code);

/// Character by character: a final Σ becomes σ as any other does.
Chars lower_case(const Chars& text);
/// Canonical decomposition (NFD). A mark that came out of a character stands for the bytes of the one before it in the text,
/// which is not the one before it in the result where marks were put in order.
Chars decomposed(const Chars& text);

}  // namespace attn::detail
