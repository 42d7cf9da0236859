#include "attn/io/tokenizer/precompiled.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::detail {
namespace {

using Text = std::span<const Char>;

bool is_within(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }
bool is_vowel(char32_t code) { return is_within(code, 0x1160, 0x11a7) || is_within(code, 0xd7b0, 0xd7c6); }
bool is_tail(char32_t code) { return is_within(code, 0x11a8, 0x11ff) || is_within(code, 0xd7cb, 0xd7fb); }
bool is_lead(char32_t code) { return is_within(code, 0x1100, 0x115f) || is_within(code, 0xa960, 0xa97c); }
bool is_syllable(char32_t code) { return is_within(code, 0xac00, 0xd7a3); }

bool joins_syllable(char32_t before, char32_t code) {
  if (is_lead(before)) return is_lead(code) || is_vowel(code) || is_syllable(code);
  if (is_vowel(before) || (is_syllable(before) && (before - 0xac00) % 28 == 0)) return is_vowel(code) || is_tail(code);
  return (is_tail(before) || is_syllable(before)) && is_tail(code);
}

/// Affects even short clusters: © has only two bytes.
bool joins_pictograph(Text text, std::size_t from, std::size_t at) {
  if (text[at - 1].code != 0x200d || at < from + 2) return false;
  std::size_t start = at - 2;
  while (start > from && is(text[start].code, kExtend)) --start;
  return is(text[start].code, kPictograph) && is(text[at].code, kPictograph);
}

/// Only clusters below six bytes matter, so one whose first two characters have more (flags, Indic conjuncts) may be
/// split.
std::size_t cluster_end(Text text, std::size_t at) {
  std::size_t end = at + 1;
  for (; end < text.size(); ++end) {
    const char32_t before = text[end - 1].code, code = text[end].code;
    if (before == U'\r' && code == U'\n') continue;
    if (is(before, kBreak) || is(code, kBreak)) break;
    if (!is(code, kExtend) && !is(before, kPrepend) && !joins_syllable(before, code) && !joins_pictograph(text, at, end)) break;
  }
  return end;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0, count = 0;
  for (const char c : text) {
    const std::size_t digit = std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

/// Replaces clusters below six bytes by the shortest rule that matches their beginning, others character by character.
class CharacterMap {
 public:
  explicit CharacterMap(const Value& map) {
    const auto check = [&](bool holds) {
      if (!holds) map.refuse(ErrorCode::format, {"a map compiled by sentencepiece, in base64"}, {"no character map"});
    };
    const auto bytes = decode_base64(map.token(kMaxCharsmap));
    check(bytes && bytes->size() >= 4);
    const std::size_t size = number(*bytes, 0) / 4;
    check(size <= (bytes->size() - 4) / 4);
    units_.reserve(size);
    for (std::size_t i = 0; i < size; ++i) units_.push_back(number(*bytes, 4 + 4 * i));
    contents_ = bytes->substr(4 + 4 * size);
    check(decode_utf8(contents_).has_value());
    for (std::size_t at = 0; at < contents_.size();) {
      const std::size_t length = content(at).size();
      map.at_most(length, kMaxContent, " bytes that it puts in at once");
      at += length + 1;
    }
  }

  Chars normalized(const Chars& text, Budget& budget) const {
    std::vector<Change> out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = cluster_end(text, at);
      std::size_t bytes = 0;
      for (std::size_t i = at; i < end && bytes < 6; ++i) bytes += utf8(text[i].code).size;
      if (bytes >= 6 || !put(text, at, end, out, budget))
        for (std::size_t i = at; i < end; ++i)
          if (!put(text, i, i + 1, out, budget)) {
            budget.hold(out.size() + 1);
            out.push_back({text[i].code, 0});
          }
      at = end;
    }
    return transformed(text, out);
  }

 private:
  static std::uint32_t number(std::string_view bytes, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
    return value;
  }
  static std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 512) >> 6); }

  std::uint32_t unit(std::uint32_t at) const { return at < units_.size() ? units_[at] : 0; }
  std::string_view content(std::size_t at) const {
    const std::string_view rest = at < contents_.size() ? std::string_view(contents_).substr(at) : std::string_view();
    return rest.substr(0, rest.find('\0'));
  }

  std::optional<std::string_view> look_up(Text text) const {
    std::uint32_t node = offset(unit(0));
    for (const Char& c : text) {
      if (c.code == 0) break;
      for (const std::uint8_t byte : utf8(c.code)) {
        node ^= byte;
        const std::uint32_t found = unit(node);
        // Bit 31 marks a value, so such a unit is not an edge.
        if ((found & 0x800000ff) != byte) return std::nullopt;
        node ^= offset(found);
        if ((found & 256) != 0) return content(unit(node) & 0x7fffffff);
      }
    }
    return std::nullopt;
  }

  bool put(const Chars& text, std::size_t from, std::size_t to, std::vector<Change>& out, Budget& budget) const {
    const auto found = look_up(Text(text).subspan(from, to - from));
    if (!found) return false;
    // Only a broken map refers into a character.
    std::string_view bytes = *found;
    std::size_t count = 0;
    const auto add = [&](char32_t code) {
      budget.hold(out.size() + 1);
      out.push_back({code, count++ < to - from ? 0 : 1});
    };
    for (; !bytes.empty() && (bytes[0] & 0xc0) == 0x80; bytes.remove_prefix(1)) add(U'\ufffd');
    for (const char32_t code : code_points(bytes)) add(code);
    // Removed characters count at the previous new one. Without one, offsets shift, as in the tokenizers library.
    if (count < to - from && !out.empty()) out.back().change -= static_cast<std::int32_t>(to - from - count);
    return true;
  }

  std::vector<std::uint32_t> units_;
  std::string contents_;
};

}  // namespace

Normalizer read_precompiled(const Value& section) {
  const auto map = std::make_shared<const CharacterMap>(section["precompiled_charsmap"]);
  return [map](const Chars& text, Budget& budget) { return map->normalized(text, budget); };
}

}  // namespace attn::detail
