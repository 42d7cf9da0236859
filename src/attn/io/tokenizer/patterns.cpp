#include "attn/io/tokenizer/patterns.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace attn::detail {
namespace {

using Text = std::span<const Char>;

bool is_newline(char32_t code) { return code == U'\n' || code == U'\r'; }

std::size_t newlines(Text text, std::size_t at) {
  while (at < text.size() && is_newline(text[at].code)) ++at;
  return at;
}

std::size_t run_of_others(Text text, std::size_t at, std::uint32_t sets) {
  while (at < text.size() && !is(text[at].code, sets)) ++at;
  return at;
}

/// Leaves the last space to the next word.
std::size_t space_run(Text text, std::size_t at) {
  const std::size_t end = run_of(text, at, kSpace);
  return end < text.size() && end - at > 1 ? end - 1 : end;
}

/// 's, 't, 're, 've, 'm, 'll, 'd; `any_case` adds capitals and ſ as s.
std::size_t contraction(Text text, std::size_t at, bool any_case) {
  if (at + 1 >= text.size() || text[at].code != U'\'') return at;
  const auto letter = [&](std::size_t i) -> char32_t {
    const char32_t code = i < text.size() ? text[i].code : 0;
    if (!any_case) return code;
    return code == U'\u017f' ? U's' : code >= U'A' && code <= U'Z' ? code + 32 : code;
  };
  const char32_t first = letter(at + 1), second = letter(at + 2);
  if (first == U's' || first == U't' || first == U'm' || first == U'd') return at + 2;
  return ((first == U'r' || first == U'v') && second == U'e') || (first == U'l' && second == U'l') ? at + 3 : at;
}

/// GPT-4: another character may precede letters, numbers are split every `digits` digits, line ends belong to the
/// characters before them.
template <std::uint32_t letters, std::size_t digits>
std::size_t gpt4(Text text, std::size_t at) {
  if (const std::size_t end = contraction(text, at, true); end > at) return end;
  const char32_t code = text[at].code;
  if (is(code, letters)) return run_of(text, at, letters);
  if (is(code, kNumber)) return run_of(text.first(std::min(text.size(), at + digits)), at, kNumber);
  if (!is_newline(code) && at + 1 < text.size() && is(text[at + 1].code, letters)) return run_of(text, at + 1, letters);
  const std::size_t start = code == U' ' ? at + 1 : at;
  if (const std::size_t end = run_of_others(text, start, kSpace | letters | kNumber); end > start) return newlines(text, end);
  for (std::size_t end = run_of(text, at, kSpace); end > at; --end)
    if (is_newline(text[end - 1].code)) return end;
  return space_run(text, at);
}

/// Capitals, then at least one lowercase letter; letters without case count as both.
std::size_t small_word(Text text, std::size_t at) {
  std::size_t end = run_of(text, at, kUpper);
  if (end < text.size() && is(text[end].code, kLower)) return run_of(text, end, kLower);
  while (end > at && !is(text[end - 1].code, kLower)) --end;
  return end;
}

std::size_t capital_word(Text text, std::size_t at) {
  const std::size_t end = run_of(text, at, kUpper);
  return end > at ? run_of(text, end, kLower) : at;
}

/// GPT-4o: a word begins with its capitals and includes its contraction.
template <bool contractions, std::size_t digits>
std::size_t o200k(Text text, std::size_t at) {
  const char32_t code = text[at].code;
  const std::size_t led = is_newline(code) || is(code, kLetter | kNumber) ? at : at + 1;
  for (const auto& word : {small_word, capital_word})
    for (const std::size_t start : {led, at})
      if (const std::size_t end = word(text, start); end > start) return contractions ? contraction(text, end, true) : end;
  if (is(code, kNumber)) return run_of(text.first(std::min(text.size(), at + digits)), at, kNumber);
  const std::size_t start = code == U' ' ? at + 1 : at;
  if (std::size_t end = run_of_others(text, start, kSpace | kLetter | kNumber); end > start) {
    while (end < text.size() && (is_newline(text[end].code) || text[end].code == U'/')) ++end;
    return end;
  }
  for (std::size_t end = run_of(text, at, kSpace); end > at; --end)
    if (is_newline(text[end - 1].code)) return end;
  return space_run(text, at);
}

/// \s{2,}
std::size_t spaces_from_two(Text text, std::size_t at) {
  const std::size_t end = run_of(text, at, kSpace);
  return end - at > 1 ? end : at;
}

/// \s{2,}|[\n\r\t]
std::size_t spaces_or_control(Text text, std::size_t at) {
  const std::size_t end = run_of(text, at, kSpace);
  return end - at > 1 || is_newline(text[at].code) || text[at].code == U'\t' ? end : at;
}

std::size_t blanks(Text text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && text[end].code == U' ') ++end;
  return end - at > 1 ? end : at;
}

std::size_t spaces(Text text, std::size_t at) { return run_of(text, at, kSpace); }

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr const char* kSpaces = R"(|\s+(?!\S)|\s+)";

std::string gpt4_text(const char* words, const char* digits, const char* others, const char* line_ends) {
  return text({kContractions, R"(|[^\r\n\p{L}\p{N}]?)", words, R"(+|\p{N})", digits, "| ?", others, R"(+[\r\n]*|\s*[\r\n])", line_ends, kSpaces});
}

std::string o200k_text(bool contractions, const char* digits) {
  const std::string end = contractions ? text({kContractions, "?"}) : "";
  constexpr const char* kLead = R"([^\r\n\p{L}\p{N}]?)";
  constexpr const char* kCapitals = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  constexpr const char* kSmall = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  return text({kLead, kCapitals, "*", kSmall, "+", end, "|", kLead, kCapitals, "+", kSmall, "*", end, R"(|\p{N})", digits,
               R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+)", kSpaces});
}

const std::vector<std::pair<std::string, Matcher>>& known() {
  static const std::vector<std::pair<std::string, Matcher>> all = [] {
    constexpr const char *kLetters = R"(\p{L})", *kOthers = R"([^\s\p{L}\p{N}])";
    std::vector<std::pair<std::string, Matcher>> made{
        {" {2,}", blanks}, {R"(\s+)", spaces}, {R"(\s{2,})", spaces_from_two}, {R"(\s{2,}|[\n\r\t])", spaces_or_control}, {std::string(kGpt2), gpt2}};
    for (const char* end : {"", "+"}) {
      made.emplace_back(gpt4_text(kLetters, "{1,3}", kOthers, end), gpt4<kLetter, 3>);
      made.emplace_back(gpt4_text(kLetters, "", kOthers, end), gpt4<kLetter, 1>);
    }
    // Qwen 3.5, with marks as letters; GPT-4o; Mistral's Tekken.
    made.emplace_back(gpt4_text(R"([\p{L}\p{M}])", "", R"([^\s\p{L}\p{M}\p{N}])", "+"), gpt4 < kLetter | kAnyMark, 1 >);
    made.emplace_back(o200k_text(true, "{1,3}"), o200k<true, 3>);
    made.emplace_back(o200k_text(false, ""), o200k<false, 1>);
    return made;
  }();
  return all;
}

}  // namespace

std::size_t gpt2(Text text, std::size_t at) {
  if (const std::size_t end = contraction(text, at, false); end > at) return end;
  const std::size_t start = text[at].code == U' ' ? at + 1 : at;
  if (start == text.size() || is(text[start].code, kSpace)) return space_run(text, at);
  if (is(text[start].code, kLetter)) return run_of(text, start, kLetter);
  return is(text[start].code, kNumber) ? run_of(text, start, kNumber) : run_of_others(text, start, kSpace | kLetter | kNumber);
}

Pattern read_pattern(const Value& section) {
  const Value pattern = section["pattern"];
  if (const Value wanted = pattern["String"]; wanted.is_there()) {
    const std::u32string codes = code_points(wanted.token(kMaxPattern));
    const auto match = [codes](Text text, std::size_t at) {
      const bool found = text.size() - at >= codes.size() && std::equal(codes.begin(), codes.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                                                                        [](char32_t code, const Char& c) { return code == c.code; });
      return found ? at + codes.size() : at;
    };
    return {match, codes.size()};
  }
  const std::string& wanted = pattern["Regex"].string();
  const auto found = std::find_if(known().begin(), known().end(), [&](const auto& each) { return each.first == wanted; });
  if (found == known().end())
    pattern["Regex"].refuse(ErrorCode::unsupported, {"one of the expressions that published tokenizers have"}, {"\"", wanted, "\""});
  return {found->second, 4};
}

}  // namespace attn::detail
