#include "attn/io/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace attn::detail {
namespace {

constexpr char32_t kCodePoints = 0x110000;

const std::uint8_t* kinds() {
  static std::array<std::uint8_t, kCodePoints> table;
  static const std::uint8_t* const filled = [] {
    for (std::size_t run = 0; run < std::size(kRuns); ++run) {
      const char32_t end = run + 1 < std::size(kRuns) ? kRuns[run + 1].first : kCodePoints;
      std::fill(table.begin() + kRuns[run].first, table.begin() + end, kRuns[run].kind);
    }
    return table.data();
  }();
  return filled;
}

bool is_in(std::span<const CodePointRange> table, char32_t code) {
  const auto after = std::upper_bound(table.begin(), table.end(), code, [](char32_t c, const CodePointRange& range) { return c < range.first; });
  return after != table.begin() && code <= std::prev(after)->last;
}

utf8proc_int32_t signed_of(char32_t code) { return static_cast<utf8proc_int32_t>(code); }

int combining_class(char32_t code) { return code >= 0x300 && is_in(kReordered, code) ? utf8proc_get_property(signed_of(code))->combining_class : 0; }

constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28, kSyllableCount = kLeadCount * kVowelCount * kTailCount;

char32_t composed(char32_t first, char32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTailCount == 0 && second > kTails && second - kTails < kTailCount)
    return first + (second - kTails);
  const auto* found = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair(first, second),
                                       [](const Composition& each, const auto& pair) { return std::pair(each.first, each.second) < pair; });
  return found != std::end(kCompositions) && found->first == first && found->second == second ? found->both : 0;
}

struct Part {
  Change change;
  int combining;
};

void reorder(std::vector<Part>& parts) {
  for (auto first = parts.begin(); first != parts.end();) {
    first = std::find_if(first, parts.end(), [](const Part& part) { return part.combining != 0; });
    const auto last = std::find_if(first, parts.end(), [](const Part& part) { return part.combining == 0; });
    std::stable_sort(first, last, [](const Part& a, const Part& b) { return a.combining < b.combining; });
    first = last;
  }
}

void compose(std::vector<Part>& parts) {
  std::size_t size = 0, starter = parts.size();
  int before = 0;  // combining class of the last character after the starter
  for (const Part part : parts) {
    if (starter < size && (before == 0 || before < part.combining)) {
      if (const char32_t both = composed(parts[starter].change.code, part.change.code); both != 0) {
        parts[starter].change = {both, parts[starter].change.change + part.change.change - 1};
        continue;
      }
    }
    if (part.combining == 0) starter = size;
    before = part.combining;
    parts[size++] = part;
  }
  parts.resize(size);
}

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

bool is_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size = bytes[at] < 0x80 ? 1 : utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (size <= 0) return false;
    at += static_cast<std::size_t>(size);
  }
  return true;
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

std::u32string code_points(std::span<const Char> text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (const Char& c : text) codes.push_back(c.code);
  return codes;
}

std::u32string code_points(std::string_view utf8) { return code_points(decode_utf8(utf8).value()); }

Utf8 utf8(char32_t code) {
  Utf8 made{};
  made.size = static_cast<std::uint8_t>(utf8proc_encode_char(signed_of(code), made.bytes));
  return made;
}

void append_utf8(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4] = {};
  const utf8proc_ssize_t size = utf8proc_encode_char(signed_of(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::string utf8_of(std::span<const Char> text) {
  std::string made;
  for (const Char& c : text) append_utf8(made, c.code);
  return made;
}

bool is(char32_t code, std::uint32_t sets) {
  static const std::uint8_t* const kind = kinds();
  return (kKinds[kind[code]] & sets) != 0;
}

std::uint8_t script_of(char32_t code) {
  const auto* after =
      std::upper_bound(std::begin(kScripts), std::end(kScripts), code, [](char32_t c, const CodePointRun& run) { return c < run.first; });
  return std::prev(after)->kind;
}

Chars transformed(std::span<const Char> text, std::span<const Change> changes) {
  Chars result;
  if (text.empty()) return result;
  result.reserve(changes.size());
  std::ptrdiff_t next = 0;
  for (const auto& [code, change] : changes) {
    const Char& from = text[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(change > 0 ? next - 1 : next, 0, std::ssize(text) - 1))];
    result.push_back({code, from.start, from.end});
    if (change <= 0) next += 1 - change;
  }
  return result;
}

Chars lower_case(const Chars& text, Budget& budget) {
  Chars lowered;
  lowered.reserve(text.size());
  for (Char c : text) {
    if (c.code == 0x130) {  // İ, the only one that becomes two
      budget.hold(lowered.size() + 2);
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

Chars normalized(const Chars& text, Form form, Budget& budget) {
  const bool compatible = form == Form::nfkc || form == Form::nfkd;
  const char32_t first_changed = 0xA0;
  if (std::all_of(text.begin(), text.end(), [](const Char& c) { return c.code < first_changed; })) return text;
  std::vector<Part> parts;
  parts.reserve(text.size());
  for (const Char& c : text) {
    utf8proc_int32_t codes[32];  // a character becomes at most 18
    utf8proc_ssize_t count = 0;
    const bool is_syllable = c.code - kSyllables < kSyllableCount;
    if (is_syllable || (c.code >= first_changed && is_in(kDecomposed, c.code))) {
      int boundary = 0;
      const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
      count = utf8proc_decompose_char(signed_of(c.code), codes, std::ssize(codes), options, &boundary);
    }
    if (count <= 0) codes[0] = signed_of(c.code);
    count = std::max<utf8proc_ssize_t>(count, 1);
    budget.hold(parts.size() + static_cast<std::size_t>(count));
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const auto code = static_cast<char32_t>(codes[i]);
      parts.push_back({{code, i == 0 ? 0 : 1}, combining_class(code)});
    }
  }
  reorder(parts);
  if (form == Form::nfc || form == Form::nfkc) compose(parts);
  std::vector<Change> changes;
  changes.reserve(parts.size());
  for (const Part& part : parts) changes.push_back(part.change);
  return transformed(text, changes);
}

}  // namespace attn::detail
