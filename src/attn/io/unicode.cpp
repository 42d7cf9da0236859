#include "attn/io/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "attn/io/unicode_ranges.hpp"

namespace attn::detail {
namespace {

bool is_in(std::span<const CodePointRange> table, char32_t code) {
  const auto after = std::upper_bound(table.begin(), table.end(), code, [](char32_t c, const CodePointRange& range) { return c < range.first; });
  return after != table.begin() && code <= std::prev(after)->last;
}

utf8proc_int32_t signed_of(char32_t code) { return static_cast<utf8proc_int32_t>(code); }

/// Canonical_Combining_Class.
int combining_class(char32_t code) { return is_in(kReordered, code) ? utf8proc_get_property(signed_of(code))->combining_class : 0; }

}  // namespace

std::optional<Chars> decode_utf8(std::string_view text) {
  Chars chars;
  chars.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (size <= 0) return std::nullopt;
    const std::size_t end = at + static_cast<std::size_t>(size);
    chars.push_back({static_cast<char32_t>(code), static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)});
    at = end;
  }
  return chars;
}

std::u32string code_points(const Chars& text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (const Char& c : text) codes.push_back(c.code);
  return codes;
}

void append_utf8(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(signed_of(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool is_removed(char32_t code) { return is_in(kRemoved, code); }
bool is_white_space(char32_t code) { return is_in(kWhiteSpace, code); }
bool is_chinese(char32_t code) { return is_in(kChinese, code); }
bool is_nonspacing_mark(char32_t code) { return is_in(kNonspacingMarks, code); }
bool is_punctuation(char32_t code) { return is_in(kPunctuation, code); }

bool is_word(char32_t code) {
  switch (utf8proc_category(signed_of(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  // Join_Control, and the symbols among Alphabetic: letters in circles and squares.
  constexpr CodePointRange kOthers[] = {{0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  return is_in(kOthers, code) || is_in(kNewWords, code);
}

Chars lower_case(const Chars& text) {
  Chars lowered;
  lowered.reserve(text.size());
  for (Char c : text) {
    if (c.code == 0x130) {  // İ, the one that becomes two
      lowered.push_back({U'i', c.start, c.end});
      c.code = 0x307;
    } else if (c.code < 0x80) {
      if (c.code >= U'A' && c.code <= U'Z') c.code += U'a' - U'A';
    } else {
      const auto* found = std::lower_bound(std::begin(kNewLowerCase), std::end(kNewLowerCase), c.code,
                                           [](const LowerCase& each, char32_t code) { return each.upper < code; });
      const bool is_new = found != std::end(kNewLowerCase) && found->upper == c.code;
      c.code = is_new ? found->lower : static_cast<char32_t>(utf8proc_tolower(signed_of(c.code)));
    }
    lowered.push_back(c);
  }
  return lowered;
}

Chars decomposed(const Chars& text) {
  if (std::all_of(text.begin(), text.end(), [](const Char& c) { return c.code < 0xC0; })) return text;
  struct Part {
    char32_t code;
    bool is_first;  // of the parts of its character
    int combining;
    std::size_t place;  // marks of one class keep their order
  };
  std::vector<Part> parts;
  parts.reserve(text.size());
  for (const Char& c : text) {
    utf8proc_int32_t codes[8];  // a character becomes four at the most
    utf8proc_ssize_t count = 0;
    if (c.code >= 0xC0 && (c.code <= 0xFFFF || is_in(kAstralDecompositions, c.code))) {
      int boundary = 0;
      count = utf8proc_decompose_char(signed_of(c.code), codes, std::ssize(codes), UTF8PROC_DECOMPOSE, &boundary);
    }
    if (count <= 0) codes[0] = signed_of(c.code);
    for (utf8proc_ssize_t i = 0; i < std::max<utf8proc_ssize_t>(count, 1); ++i) {
      const auto code = static_cast<char32_t>(codes[i]);
      parts.push_back({code, i == 0, combining_class(code), parts.size()});
    }
  }
  // Marks in the order of their classes, between those that have none.
  for (auto first = parts.begin(); first != parts.end();) {
    first = std::find_if(first, parts.end(), [](const Part& part) { return part.combining != 0; });
    const auto last = std::find_if(first, parts.end(), [](const Part& part) { return part.combining == 0; });
    std::sort(first, last, [](const Part& a, const Part& b) { return std::pair(a.combining, a.place) < std::pair(b.combining, b.place); });
    first = last;
  }
  Chars result;
  result.reserve(parts.size());
  std::size_t taken = 0;  // characters of the text
  for (const Part& part : parts) {
    if (part.is_first) ++taken;
    const Char& from = text[std::max<std::size_t>(taken, 1) - 1];
    result.push_back({part.code, from.start, from.end});
  }
  return result;
}

}  // namespace attn::detail
