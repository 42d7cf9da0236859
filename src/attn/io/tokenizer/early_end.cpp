#include "attn/io/tokenizer/early_end.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace attn::detail {
namespace {

constexpr char32_t kUnderline = U'\u2581';

bool is_in(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

/// Letters and digits that have no decomposition and that no mark, case or script makes more than one: of Latin, Greek, Cyrillic and Hebrew.
bool is_plain(char32_t code) {
  if (code < 0x80) return is_in(code, U'0', U'9') || is_in(code, U'A', U'Z') || is_in(code, U'a', U'z');
  if (code == U'\u0419' || code == U'\u0439') return false;
  return is_in(code, U'\u03b1', U'\u03c9') || is_in(code, U'\u0410', U'\u044f') || is_in(code, U'\u05d0', U'\u05ea');
}

/// The bytes of the plain letter that begins there, or 0.
std::size_t letter_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(at) < 0x80) return is_plain(byte(at)) ? 1 : 0;
  if ((byte(at) & 0xe0U) != 0xc0U || (byte(at + 1) & 0xc0U) != 0x80U) return 0;
  return is_plain((byte(at) & 0x1fU) << 6 | (byte(at + 1) & 0x3fU)) ? 2 : 0;
}
/// And ends there.
std::size_t letter_before(std::string_view text, std::size_t end) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(2, end); ++size)
    if (letter_at(text, end - size) == size) return size;
  return 0;
}

bool is_letter(char32_t code) { return is(code, kLetter | kNumber); }

/// Sequences taken apart.
void flatten(const Value& section, const char* list, std::vector<Value>& parts) {
  if (!section.is_there()) return;
  const Value all = section[list];
  if (!all.is_there()) return parts.push_back(section);
  for (std::size_t i = 0; i < all.array().size(); ++i) flatten(all[i], list, parts);
}

bool is_of(const Value& part, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), part["type"].string()) != types.end();
}

bool is_word_pattern(const Value& pattern) { return pattern["Regex"].string().find("p{") != std::string::npos; }

/// Whether the space between two letters is left one, or ▁.
bool keeps(const Normalizer& normalize, char32_t letter) {
  Budget budget(3);
  const Chars made = normalize({{letter, 0, 1}, {U' ', 1, 2}, {letter, 2, 3}}, budget);
  std::size_t at = made.size();
  while (at > 0 && is_letter(made[at - 1].code)) --at;
  return at > 1 && at < made.size() && (made[at - 1].code == U' ' || made[at - 1].code == kUnderline) && is_letter(made[at - 2].code);
}

}  // namespace

EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added) {
  EarlyEnd sides{.left = true, .right = true};
  // Whether there may be ▁ in the place of the space.
  bool mark = false;
  std::vector<Value> parts;
  flatten(normalizer, "normalizers", parts);
  for (const Value& part : parts) {
    if (is_of(part, {"Replace"})) {
      const Value pattern = part["pattern"];
      const std::u32string content = code_points(part["content"].string());
      // What it finds has to begin behind the letter.
      if (pattern["String"].is_there()) {
        const std::u32string text = code_points(pattern["String"].string());
        if (std::any_of(text.begin(), text.end(), is_letter)) return {};
        if (text.empty() || (text[0] != U' ' && text[0] != kUnderline)) continue;
      } else if (is_word_pattern(pattern)) {
        return {};
      }
      if (content.empty() || (content[0] != U' ' && content[0] != kUnderline)) return {};
      mark = mark || content[0] == kUnderline;
      sides.left = false;
    } else if (is_of(part, {"Strip", "Prepend"})) {
      sides.left = false;
    } else if (!is_of(part, {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Nmt", "Precompiled"})) {
      return {};
    }
  }
  try {
    // What a Precompiled map makes of it is not known otherwise.
    for (char32_t code = U'0'; code < 0x600; ++code)
      if (is_plain(code) && !keeps(normalize, code)) return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::memory) throw;
    return {};
  }
  bool crosses = false;
  added.for_each([&](const AddedToken& token, std::string_view content) {
    const std::u32string text = code_points(content);
    for (std::size_t i = 0; i + 1 < text.size(); ++i)
      crosses = crosses || (is_letter(text[i]) && (is(text[i + 1], kSpace) || text[i + 1] == kUnderline));
    crosses = crosses || (token.rstrip && !text.empty() && is_letter(text.back()));
    if (token.single_word && !text.empty() && (is(text[0], kSpace) || text[0] == kUnderline)) sides.left = false;
    return !crosses;
  });
  if (crosses) return {};
  parts.clear();
  flatten(pre_tokenizer, "pretokenizers", parts);
  for (const Value& part : parts) {
    const bool is_white = is_of(part, {"BertPreTokenizer", "WhitespaceSplit"});
    if (is_of(part, {"Digits", "Punctuation"}) || (is_white && mark)) continue;
    const bool cuts = is_white || is_of(part, {"Whitespace"}) || (is_of(part, {"ByteLevel"}) && part["use_regex"].boolean_or(true)) ||
                      (is_of(part, {"Metaspace"}) && code_points(part["replacement"].string()) == std::u32string(1, kUnderline) &&
                       part["split"].boolean_or(true)) ||
                      (is_of(part, {"Split"}) && part["pattern"]["Regex"].is_there() && is_word_pattern(part["pattern"]) &&
                       part["behavior"].string() == "Isolated" && !part["invert"].boolean());
    return cuts ? sides : EarlyEnd{};
  }
  return {};
}

std::optional<std::size_t> early_end_from(std::string_view text, std::size_t at) {
  for (at = text.find(' ', at); at != std::string_view::npos; at = text.find(' ', at + 1)) {
    const std::size_t before = letter_before(text, at);
    if (before > 0 && letter_before(text, at - before) > 0 && letter_at(text, at + 1) > 0) return at;
  }
  return std::nullopt;
}

}  // namespace attn::detail
