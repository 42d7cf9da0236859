#include "attn/io/tokenizer/early_end.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace attn::detail {
namespace {

constexpr char32_t kUnderline = U'\u2581';

bool is_in(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

/// Letters and digits of Latin, Greek, Cyrillic and Hebrew without decomposition, which nothing expands.
bool is_plain(char32_t code) {
  if (code < 0x80) return is_in(code, U'0', U'9') || is_in(code, U'A', U'Z') || is_in(code, U'a', U'z');
  if (code == U'\u0419' || code == U'\u0439') return false;
  return is_in(code, U'\u03b1', U'\u03c9') || is_in(code, U'\u0410', U'\u044f') || is_in(code, U'\u05d0', U'\u05ea');
}

std::size_t letter_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(at) < 0x80) return is_plain(byte(at)) ? 1 : 0;
  if ((byte(at) & 0xe0U) != 0xc0U || (byte(at + 1) & 0xc0U) != 0x80U) return 0;
  return is_plain((byte(at) & 0x1fU) << 6 | (byte(at + 1) & 0x3fU)) ? 2 : 0;
}
std::size_t letter_before(std::string_view text, std::size_t end) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(2, end); ++size)
    if (letter_at(text, end - size) == size) return size;
  return 0;
}

/// Letters of scripts without spaces, and Korean syllables. None composes with the character before.
bool is_unspaced(char32_t code) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {U'\u0e01', U'\u0e2e'}, {U'\u3041', U'\u3096'}, {U'\u30a1', U'\u30fa'}, {U'\u4e00', U'\u9fa5'}, {U'\uac00', U'\ud7a3'}};
  return std::any_of(std::begin(kRanges), std::end(kRanges), [&](const auto& range) { return is_in(code, range.first, range.second); });
}
bool is_pause(char32_t code) { return std::u32string_view(U"\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f").find(code) != std::u32string_view::npos; }

/// All characters searched for have three bytes.
char32_t wide_at(std::string_view text, std::size_t at) {
  if (text.size() < 3 || at > text.size() - 3 || (static_cast<unsigned char>(text[at]) & 0xf0U) != 0xe0U) return 0;
  const auto bits = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]) & 0x3fU); };
  return (static_cast<char32_t>(static_cast<unsigned char>(text[at]) & 0xfU) << 12) | (bits(1) << 6) | bits(2);
}
constexpr std::size_t kWide = 3;

bool is_letter(char32_t code) { return is(code, kLetter | kNumber); }

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

std::u32string made_of(const Normalizer& normalize, std::u32string_view text) {
  Budget budget(text.size());
  Chars chars;
  for (std::uint32_t i = 0; i < text.size(); ++i) chars.push_back({text[i], i, i + 1});
  return code_points(normalize(std::move(chars), budget));
}

/// A space or ▁ must remain between two letters.
bool keeps_space(std::u32string_view made) {
  std::size_t at = made.size();
  while (at > 0 && is_letter(made[at - 1])) --at;
  return at > 1 && at < made.size() && (made[at - 1] == U' ' || made[at - 1] == kUnderline) && is_letter(made[at - 2]);
}

bool fits(Unspaced unspaced, std::u32string_view made, char32_t before, char32_t after) {
  for (std::size_t at = made.find(before); at != std::u32string_view::npos; at = made.find(before, at + 1)) {
    std::size_t next = at + 1;
    if (unspaced == Unspaced::spaces) {
      while (next < made.size() && made[next] == U' ') ++next;
      if (next == at + 1) continue;
    }
    if (next == made.size() || made[next] != after) continue;
    if (unspaced != Unspaced::punctuation || !is(after, kLetter | kNumber | kSpace)) return true;
  }
  return false;
}

}  // namespace

namespace {

/// The sides that may be skipped at a space, and whether ▁ may replace the space.
std::pair<EarlyEnd, bool> read_sides(const Value& normalizer) {
  EarlyEnd sides{.left = true, .right = true};
  bool mark = false;
  std::vector<Value> parts;
  flatten(normalizer, "normalizers", parts);
  for (const Value& part : parts) {
    if (is_of(part, {"Replace"})) {
      const Value pattern = part["pattern"];
      const std::u32string content = code_points(part["content"].string());
      // A match must begin after the letter.
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
  return {sides, mark};
}

/// Whether an added token spans a place with a space, and one without.
std::pair<bool, bool> crossings(const AddedTokens& added, EarlyEnd& sides) {
  bool spaced = false, unspaced = false;
  added.for_each([&](const AddedToken& token, std::string_view content) {
    const std::u32string text = code_points(content);
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      spaced = spaced || (is_letter(text[i]) && (is(text[i + 1], kSpace) || text[i + 1] == kUnderline));
      unspaced = unspaced || (is_unspaced(text[i]) && (is_unspaced(text[i + 1]) || !is(text[i + 1], kLetter | kNumber | kSpace)));
    }
    spaced = spaced || (token.rstrip && !text.empty() && is_letter(text.back()));
    unspaced = unspaced || (token.single_word && !text.empty() && is_unspaced(text.back()));
    if (token.single_word && !text.empty() && (is(text[0], kSpace) || text[0] == kUnderline)) sides.left = false;
    return !spaced;
  });
  return {spaced, unspaced};
}

bool is_white(const Value& part) { return is_of(part, {"BertPreTokenizer", "WhitespaceSplit"}); }

bool cuts(const Value& part) {
  return is_white(part) || is_of(part, {"Whitespace"}) || (is_of(part, {"ByteLevel"}) && part["use_regex"].boolean_or(true)) ||
         (is_of(part, {"Metaspace"}) && code_points(part["replacement"].string()) == std::u32string(1, kUnderline) &&
          part["split"].boolean_or(true)) ||
         (is_of(part, {"Split"}) && part["pattern"]["Regex"].is_there() && is_word_pattern(part["pattern"]) &&
          part["behavior"].string() == "Isolated" && !part["invert"].boolean());
}

}  // namespace

EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added, bool open_words) {
  auto [ends, mark] = read_sides(normalizer);
  if (!ends.right) return {};
  try {
    // A Precompiled map can only be tested by applying it.
    for (char32_t code = U'0'; code < 0x600; ++code)
      if (is_plain(code) && !keeps_space(made_of(normalize, std::u32string{code, U' ', code}))) return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::memory) throw;
    return {};
  }
  const auto [spaced, unspaced] = crossings(added, ends);
  if (spaced) return {};
  std::vector<Value> parts;
  flatten(pre_tokenizer, "pretokenizers", parts);
  const bool has_mark = mark;
  const auto first = std::find_if(parts.begin(), parts.end(),
                                  [&](const Value& part) { return !is_of(part, {"Digits", "Punctuation"}) && !(has_mark && is_white(part)); });
  if (first == parts.end() || !cuts(*first)) ends.left = ends.right = false;
  if (unspaced) return ends;
  if (open_words && std::all_of(parts.begin(), parts.end(), [](const Value& part) {
        return is_white(part) || is_of(part, {"Whitespace", "Digits", "Punctuation", "Metaspace"});
      }))
    ends.unspaced = Unspaced::open_word;
  else if (ends.right && !is_of(*first, {"Whitespace", "Metaspace"}))
    ends.unspaced = is_white(*first) ? Unspaced::spaces : Unspaced::punctuation;
  return ends;
}

std::optional<TextPlace> early_end_from(const EarlyEnd& ends, const Normalizer& normalize, std::string_view text, std::size_t from, Side side) {
  constexpr int kMostPlaces = 64;
  const auto made = [&](std::u32string_view around) -> std::u32string {
    try {
      return made_of(normalize, around);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::memory) throw;
      return {};
    }
  };
  const bool spaced = side == Side::left ? ends.left : ends.right;
  int tried = 0;
  for (std::size_t at = std::max(from, kWide); at < text.size() && tried < kMostPlaces; ++at) {
    if (text[at] == ' ') {
      const std::size_t before = letter_before(text, at);
      if (before > 0 && letter_before(text, at - before) > 0 && letter_at(text, at + 1) > 0) {
        if (spaced) return TextPlace{at};
        continue;
      }
    }
    const char32_t letter = wide_at(text, at - kWide), after = wide_at(text, text[at] == ' ' ? at + 1 : at);
    if (!is_unspaced(letter) || !(is_unspaced(after) || (text[at] != ' ' && is_pause(after)))) continue;
    ++tried;
    if (text[at] == ' ') {
      if (spaced && keeps_space(made(std::u32string{letter, U' ', after}))) return TextPlace{at};
    } else if (side == Side::right && ends.unspaced != Unspaced::none && fits(ends.unspaced, made(std::u32string{letter, after}), letter, after)) {
      return TextPlace{at, ends.unspaced == Unspaced::open_word};
    }
  }
  return std::nullopt;
}

}  // namespace attn::detail
