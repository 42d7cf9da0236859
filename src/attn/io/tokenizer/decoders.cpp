#include "attn/io/tokenizer/decoders.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "attn/io/tokenizer/byte_characters.hpp"
#include "attn/io/tokenizer/unicode.hpp"

namespace attn::detail {
namespace {

using Tokens = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

/// What English has without a space, as the library's WordPiece decoder closes it up; of a whole text all but one.
constexpr std::pair<std::string_view, std::string_view> kClosings[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                                                       {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                                                       {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

void close_up(std::string& text, bool is_whole) {
  for (const auto& [from, to] : kClosings)
    if (!is_whole || from != " do not") replace_all(text, from, to);
}

Decoder word_piece(const Value& section) {
  return [prefix = section["prefix"].token_or("##", kMaxAffix), cleanup = section["cleanup"].boolean_or(true)](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : ' ' + tokens[i];
      if (cleanup) close_up(tokens[i], false);
    }
    return tokens;
  };
}

/// Bytes as UTF-8; where they are none, U+FFFD for each longest run that begins a character (Unicode's practice, as the WHATWG decoder).
std::string lossy(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    const unsigned first = at(i);
    std::size_t size = first < 0x80                     ? 1
                       : first >= 0xc2 && first <= 0xdf ? 2
                       : first >= 0xe0 && first <= 0xef ? 3
                       : first >= 0xf0 && first <= 0xf4 ? 4
                                                        : 0;
    if (size == 0) {
      text += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    std::size_t good = 1;
    const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80, most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    while (good < size && at(i + good) >= (good == 1 ? least : 0x80U) && at(i + good) <= (good == 1 ? most : 0xbfU)) ++good;
    if (good == size)
      text += bytes.substr(i, size);
    else
      text += "\xef\xbf\xbd";
    i += good;
  }
  return text;
}

/// A token with a character that stands for no byte is text itself.
Decoder byte_level(const Value&) {
  std::map<char32_t, char> bytes;
  for (std::size_t byte = 0; byte < kByteCharacters.size(); ++byte) bytes.emplace(kByteCharacters[byte], static_cast<char>(byte));
  return [bytes = std::move(bytes)](const Tokens& tokens) {
    std::string all;
    for (const std::string& token : tokens) {
      const std::u32string codes = code_points(token);
      const bool stands = std::all_of(codes.begin(), codes.end(), [&](char32_t code) { return bytes.contains(code); });
      if (!stands) all += token;
      for (const char32_t code : stands ? codes : std::u32string()) all += bytes.at(code);
    }
    return Tokens{lossy(all)};
  };
}

Decoder metaspace(const Value& section) {
  // Older files say it otherwise.
  const Value scheme = section["prepend_scheme"];
  const bool prepends = scheme.is_there() ? scheme.string() != "never" : section["add_prefix_space"].boolean_or(true);
  return [prepends, mark = section["replacement"].token_or("\xe2\x96\x81", kMaxAffix)](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], mark, i == 0 && prepends ? "" : " ");
    return tokens;
  };
}

Decoder bpe(const Value& section) {
  return [suffix = section["suffix"].token_or("</w>", kMaxAffix)](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    return tokens;
  };
}

/// The byte of <0x41>.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  unsigned byte = 0;
  for (const char c : token.substr(3, 2)) {
    const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                           : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                  : 16;
    if (digit > 15) return std::nullopt;
    byte = 16 * byte + digit;
  }
  return static_cast<char>(byte);
}

/// Runs of such tokens are bytes of UTF-8; what is none is U+FFFD for each.
Decoder byte_fallback(const Value&) {
  return [](const Tokens& tokens) {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (decode_utf8(bytes))
        out.push_back(bytes);
      else
        out.insert(out.end(), bytes.size(), "\xef\xbf\xbd");
      bytes.clear();
    };
    for (const std::string& token : tokens)
      if (const auto byte = byte_of(token)) {
        bytes += *byte;
      } else {
        flush();
        out.push_back(token);
      }
    flush();
    return out;
  };
}

Decoder strip(const Value& section) {
  const std::u32string content = code_points(section["content"].token(kMaxAffix));
  return
      [content, start = static_cast<std::size_t>(section["start"].whole()), stop = static_cast<std::size_t>(section["stop"].whole())](Tokens tokens) {
        for (std::string& token : tokens) {
          const std::u32string codes = code_points(token);
          std::size_t from = 0, to = codes.size();
          const auto is_content = [&](std::size_t i) { return content.size() == 1 && codes[i] == content[0]; };
          while (from < std::min(start, codes.size()) && is_content(from)) ++from;
          for (std::size_t cut = 0; cut < stop && to > from && is_content(to - 1); ++cut) --to;
          token.clear();
          for (std::size_t i = from; i < to; ++i) append_utf8(token, codes[i]);
        }
        return tokens;
      };
}

Decoder replace(const Value& section) {
  const Value pattern = section["pattern"];
  if (!pattern["String"].is_there()) pattern.refuse(ErrorCode::unsupported, {"a String"}, {"something else"});
  return [from = pattern["String"].token(kMaxPattern), to = section["content"].token(kMaxContent)](Tokens tokens) {
    for (std::string& token : tokens) replace_all(token, from, to);
    return tokens;
  };
}

Decoder fuse(const Value&) {
  return [](const Tokens& tokens) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    return Tokens{std::move(all)};
  };
}

Decoder read(const Value& section, PartCount& parts);

constexpr std::pair<std::string_view, Decoder (*)(const Value&)> kDecoders[] = {{"WordPiece", &word_piece},
                                                                                {"ByteLevel", &byte_level},
                                                                                {"Metaspace", &metaspace},
                                                                                {"BPEDecoder", &bpe},
                                                                                {"ByteFallback", &byte_fallback},
                                                                                {"Fuse", &fuse},
                                                                                {"Strip", &strip},
                                                                                {"Replace", &replace}};

Decoder sequence(const Value& section, PartCount& parts) {
  std::vector<Decoder> all;
  const Value decoders = section["decoders"];
  for (std::size_t i = 0; i < decoders.array().size(); ++i) all.push_back(read(decoders[i], parts));
  return [all = std::move(all)](Tokens tokens) {
    for (const Decoder& decoder : all) tokens = decoder(std::move(tokens));
    return tokens;
  };
}

Decoder read(const Value& section, PartCount& parts) {
  parts.add(section);
  const std::string& type = section["type"].string();
  if (type == "Sequence") return sequence(section, parts);
  std::string known = "Sequence";
  for (const auto& [name, read_one] : kDecoders) {
    if (name == type) return read_one(section);
    known += ", " + std::string(name);
  }
  section["type"].refuse(ErrorCode::unsupported, {known}, {type});
}

}  // namespace

Decoder read_decoder(const Value& section) {
  if (!section.is_there())
    return [](const Tokens& tokens) {
      std::string all;
      for (std::size_t i = 0; i < tokens.size(); ++i) all += (i > 0 ? " " : "") + tokens[i];
      return Tokens{std::move(all)};
    };
  try {
    PartCount parts(kMaxPostProcessors);
    return read(section, parts);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::memory) throw;
    return [error](const Tokens&) -> Tokens { throw Error(error); };
  }
}

std::string clean_up(std::string text) {
  close_up(text, true);
  return text;
}

}  // namespace attn::detail
