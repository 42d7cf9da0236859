#include "attn/io/tokenizer/decoders.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "attn/io/tokenizer/byte_characters.hpp"
#include "attn/io/tokenizer/patterns.hpp"
#include "attn/io/tokenizer/unicode.hpp"

namespace attn::detail {
namespace {

using Tokens = std::vector<std::string>;

Decoder read_part(const Value& section, PartCount& parts);

constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD

std::string replaced(std::string_view text, std::string_view wanted, std::string_view content) {
  std::string made;
  if (wanted.empty()) return std::string(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(wanted, at), text.size());
    made += text.substr(at, found - at);
    if (found < text.size()) made += content;
    at = found + (found < text.size() ? wanted.size() : 0);
  }
  return made;
}

std::string joined(const Tokens& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

void hold(const Tokens& tokens, Budget& budget) {
  std::size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  budget.hold(bytes);
}

/// Returns the size of the first character and true, or the number of invalid bytes that become one U+FFFD and false.
std::pair<std::size_t, bool> character_at(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80, high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i)
    if (byte(i) < (i == 1 ? low : 0x80U) || byte(i) > (i == 1 ? high : 0xBFU)) return {i, false};
  return {size, true};
}

std::string lossy(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto [size, is_whole] = character_at(bytes);
    text += is_whole ? bytes.substr(0, size) : std::string_view(kReplacement);
    bytes.remove_prefix(size);
  }
  return text;
}

std::optional<char> byte_of(char32_t code) {
  static const std::map<char32_t, char> bytes = [] {
    std::map<char32_t, char> made;
    for (std::size_t byte = 0; byte < kByteCharacters.size(); ++byte) made.emplace(kByteCharacters[byte], static_cast<char>(byte));
    return made;
  }();
  const auto found = bytes.find(code);
  return found == bytes.end() ? std::nullopt : std::optional(found->second);
}

Decoder byte_level(const Value&, PartCount&) {
  return [](Tokens& tokens, Budget&) {
    std::string bytes;
    for (const std::string& token : tokens) {
      std::string own;
      // Another character makes the token ordinary text.
      for (const char32_t code : code_points(std::string_view(token))) {
        const auto byte = byte_of(code);
        if (!byte) {
          own = token;
          break;
        }
        own += *byte;
      }
      bytes += own;
    }
    tokens = {lossy(bytes)};
  };
}

Decoder word_piece(const Value& section, PartCount&) {
  return [prefix = section["prefix"].token(kMaxAffix), cleans = section["cleanup"].boolean()](Tokens& tokens, Budget&) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      if (cleans) token = replaced(without_spaces_before_punctuation(std::move(token)), " do not", " don't");
    }
  };
}

Decoder bpe(const Value& section, PartCount&) {
  return [suffix = section["suffix"].token(kMaxAffix)](Tokens& tokens, Budget& budget) {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = replaced(tokens[i], suffix, i + 1 < tokens.size() ? " " : "");
    hold(tokens, budget);
  };
}

Decoder metaspace(const Value& section, PartCount&) {
  const std::u32string replacement = code_points(std::string_view(section["replacement"].string()));
  if (replacement.size() != 1) section["replacement"].refuse(ErrorCode::format, {"one character"}, {section["replacement"].string()});
  const Value scheme = section["prepend_scheme"];
  const bool prepends = scheme.is_there() ? scheme.string() != "never" : section["add_prefix_space"].boolean_or(true);
  return [mark = replacement[0], prepends](Tokens& tokens, Budget&) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string made;
      for (const char32_t code : code_points(std::string_view(tokens[i])))
        if (code != mark)
          append_utf8(made, code);
        else if (i > 0 || !prepends)
          made += ' ';
      tokens[i] = std::move(made);
    }
  };
}

/// <0x0A>
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = static_cast<char>(c | 32);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
  };
  const int high = digit(token[3]), low = digit(token[4]);
  // As Rust's number parser does, accepts a plus sign.
  if (low >= 0 && token[3] == '+') return static_cast<char>(low);
  return high < 0 || low < 0 ? std::nullopt : std::optional(static_cast<char>(16 * high + low));
}

Decoder byte_fallback(const Value&, PartCount&) {
  return [](Tokens& tokens, Budget& budget) {
    Tokens made;
    std::string bytes;
    const auto flush = [&] {
      if (decode_utf8(bytes))
        made.push_back(std::move(bytes));
      else
        made.insert(made.end(), bytes.size(), kReplacement);
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = fallback_byte(token)) {
        bytes += *byte;
        continue;
      }
      if (!bytes.empty()) flush();
      made.push_back(std::move(token));
    }
    if (!bytes.empty()) flush();
    tokens = std::move(made);
    hold(tokens, budget);
  };
}

Decoder fuse(const Value&, PartCount&) {
  return [](Tokens& tokens, Budget&) { tokens = {joined(tokens)}; };
}

Decoder strip(const Value& section, PartCount&) {
  const std::u32string content = code_points(std::string_view(section["content"].string()));
  if (content.size() != 1) section["content"].refuse(ErrorCode::format, {"one character"}, {section["content"].string()});
  const std::int32_t start = section["start"].whole(), stop = section["stop"].whole();
  return [content, start, stop](Tokens& tokens, Budget&) {
    std::string one;
    append_utf8(one, content[0]);
    for (std::string& token : tokens) {
      const std::string_view text = token;
      std::size_t from = 0, to = text.size();
      for (std::int32_t i = 0; i < start && text.substr(from).starts_with(one); ++i) from += one.size();
      for (std::int32_t i = 0; i < stop && text.substr(from, to - from).ends_with(one); ++i) to -= one.size();
      token = std::string(text.substr(from, to - from));
    }
  };
}

Decoder replace(const Value& section, PartCount&) {
  return [pattern = read_pattern(section), content = section["content"].token(kMaxContent)](Tokens& tokens, Budget& budget) {
    std::size_t bytes = 0;
    for (std::string& token : tokens) {
      const Chars text = decode_utf8(token).value();
      budget.spend(pattern.cost * text.size());
      std::string made;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = pattern.match(text, at);
        if (end > at) {
          budget.hold(bytes + made.size() + content.size());
          made += content;
          at = end;
        } else {
          append_utf8(made, text[at++].code);
        }
      }
      bytes += made.size();
      token = std::move(made);
    }
  };
}

Decoder sequence(const Value& section, PartCount& parts) {
  std::vector<Decoder> all;
  const Value list = section["decoders"];
  for (std::size_t i = 0; i < list.array().size(); ++i) all.push_back(read_part(list[i], parts));
  return [all = std::move(all)](Tokens& tokens, Budget& budget) {
    for (const Decoder& each : all) each(tokens, budget);
  };
}

using Read = Decoder (*)(const Value&, PartCount&);
constexpr Named<Read> kKindsOfDecoders[] = {
    {"ByteLevel", byte_level},
    {"WordPiece", word_piece},
    {"BPEDecoder", bpe},
    {"Metaspace", metaspace},
    {"ByteFallback", byte_fallback},
    {"Fuse", fuse},
    {"Strip", strip},
    {"Replace", replace},
    {"Sequence", sequence},
};

Decoder read_part(const Value& section, PartCount& parts) {
  parts.add(section);
  return choose(kKindsOfDecoders, section["type"])(section, parts);
}

}  // namespace

std::string without_spaces_before_punctuation(std::string text) {
  constexpr std::pair<const char*, const char*> kReplaced[] = {{" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
                                                               {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [wanted, content] : kReplaced) text = replaced(text, wanted, content);
  return text;
}

Decoder read_decoder(const Value& section) {
  PartCount parts(kMaxDecoders);
  return read_part(section, parts);
}

}  // namespace attn::detail
