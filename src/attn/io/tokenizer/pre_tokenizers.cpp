#include "attn/io/tokenizer/pre_tokenizers.hpp"

#include <string>
#include <utility>
#include <vector>

#include "attn/io/tokenizer/byte_characters.hpp"
#include "attn/io/tokenizer/patterns.hpp"

namespace attn::detail {
namespace {

using Text = std::span<const Char>;

PreTokenizer read_part(const Value& section, PartCount& parts);

constexpr Named<Behavior> kBehaviors[] = {
    {"Removed", Behavior::removed},
    {"Isolated", Behavior::isolated},
    {"MergedWithPrevious", Behavior::merged_with_previous},
    {"MergedWithNext", Behavior::merged_with_next},
    {"Contiguous", Behavior::contiguous},
};

void spend(const Pieces& text, Budget& budget, std::uint64_t cost) {
  std::uint64_t characters = 0;
  for (const Piece& piece : text.pieces) characters += piece.to - piece.from;
  budget.spend(cost * characters);
}

template <std::uint32_t sets>
std::size_t one(Text text, std::size_t at) {
  return is(text[at].code, sets) ? at + 1 : at;
}
std::size_t white_space(Text text, std::size_t at) { return run_of(text, at, kSpace); }

/// \w+|[^\w\s]+
std::size_t word_or_other(Text text, std::size_t at) {
  if (is(text[at].code, kWord)) return run_of(text, at, kWord);
  while (at < text.size() && !is(text[at].code, kWord | kSpace)) ++at;
  return at;
}

char32_t character_of(const Value& value) {
  const std::u32string codes = code_points(value.string());
  if (codes.size() != 1) value.refuse(ErrorCode::format, {"one character"}, {"\"", value.string(), "\""});
  return codes[0];
}

/// `first` gets the offsets of the piece's first character.
void put_before(char32_t first, Text piece, Chars& out) {
  out.push_back({first, piece[0].start, piece[0].end});
  out.insert(out.end(), piece.begin(), piece.end());
}

PreTokenizer byte_level(const Value& section, PartCount&) {
  const bool prefixes = section["add_prefix_space"].boolean(), words = section["use_regex"].boolean_or(true);
  section["trim_offsets"].boolean();
  return [=](Pieces& text, Budget& budget) {
    if (prefixes)
      rewrite(text, [&](Text piece, Chars& out) {
        budget.hold(out.size() + piece.size() + 1);
        if (piece[0].code == U' ')
          out.insert(out.end(), piece.begin(), piece.end());
        else
          put_before(U' ', piece, out);
      });
    if (words) split(text, gpt2, Behavior::isolated);
    rewrite(text, [&](Text piece, Chars& out) {
      for (const Char& c : piece)
        for (const std::uint8_t byte : utf8(c.code)) {
          budget.hold(out.size() + 1);
          out.push_back({kByteCharacters[byte], c.start, c.end});
        }
    });
  };
}

enum class Scheme : std::uint8_t { always, first, never };
constexpr Named<Scheme> kSchemes[] = {{"always", Scheme::always}, {"first", Scheme::first}, {"never", Scheme::never}};

PreTokenizer metaspace(const Value& section, PartCount&) {
  const char32_t replacement = character_of(section["replacement"]);
  Scheme scheme = section["add_prefix_space"].boolean_or(true) ? Scheme::always : Scheme::never;
  if (const Value given = section["prepend_scheme"]; given.is_there()) scheme = choose(kSchemes, given);
  const bool cuts = section["split"].boolean_or(true);
  return [=](Pieces& text, Budget& budget) {
    rewrite(text, [&](Text piece, Chars& out) {
      const std::size_t from = out.size();
      const char32_t first = piece[0].code;
      const bool begins = scheme == Scheme::always || (scheme == Scheme::first && piece[0].start == 0);
      budget.hold(from + piece.size() + 1);
      if (begins && first != U' ' && first != replacement)
        put_before(replacement, piece, out);
      else
        out.insert(out.end(), piece.begin(), piece.end());
      for (std::size_t i = from; i < out.size(); ++i)
        if (out[i].code == U' ') out[i].code = replacement;
    });
    if (cuts) split(text, [=](Text piece, std::size_t at) { return piece[at].code == replacement ? at + 1 : at; }, Behavior::merged_with_next);
  };
}

PreTokenizer bert(const Value&, PartCount&) {
  return [](Pieces& text, Budget&) {
    split(text, white_space, Behavior::removed);
    split(text, one<kPunctuation>, Behavior::isolated);
  };
}

PreTokenizer whitespace(const Value&, PartCount&) {
  return [](Pieces& text, Budget&) { split(text, word_or_other, Behavior::removed, true); };
}

PreTokenizer whitespace_split(const Value&, PartCount&) {
  return [](Pieces& text, Budget&) { split(text, white_space, Behavior::removed); };
}

PreTokenizer punctuation(const Value& section, PartCount&) {
  const Value given = section["behavior"];
  const Behavior behavior = given.is_there() ? choose(kBehaviors, given) : Behavior::isolated;
  return [=](Pieces& text, Budget&) { split(text, one<kPunctuation>, behavior); };
}

PreTokenizer digits(const Value& section, PartCount&) {
  const Behavior behavior = section["individual_digits"].boolean() ? Behavior::isolated : Behavior::contiguous;
  return [=](Pieces& text, Budget&) { split(text, one<kNumeric>, behavior); };
}

PreTokenizer split_at(const Value& section, PartCount&) {
  section["behavior"].string();
  return [pattern = read_pattern(section), behavior = choose(kBehaviors, section["behavior"]), invert = section["invert"].boolean()](Pieces& text,
                                                                                                                                     Budget& budget) {
    spend(text, budget, pattern.cost);
    split(text, pattern.match, behavior, invert);
  };
}

PreTokenizer char_delimiter(const Value& section, PartCount&) {
  const char32_t delimiter = character_of(section["delimiter"]);
  return [=](Pieces& text, Budget&) {
    split(text, [=](Text piece, std::size_t at) { return piece[at].code == delimiter ? at + 1 : at; }, Behavior::removed);
  };
}

PreTokenizer fixed_length(const Value& section, PartCount&) {
  const auto length = static_cast<std::size_t>(section["length"].whole());
  if (length == 0) section["length"].refuse(ErrorCode::format, {"a number of at least 1"}, {length});
  return [=](Pieces& text, Budget&) {
    split(text, [=](Text piece, std::size_t at) { return std::min(piece.size(), at + length); }, Behavior::isolated);
  };
}

/// One script, then also characters that belong to every script.
std::size_t script_run(Text text, std::size_t at) {
  const std::uint8_t script = script_of(text[at].code);
  if (script == 0) return at;
  const auto belongs = [&](const Char& c) {
    const std::uint8_t each = script_of(c.code);
    return each == script || each == 0;
  };
  while (at < text.size() && belongs(text[at])) ++at;
  return at;
}

/// As the tokenizers library does, drops characters of every script at the start.
PreTokenizer unicode_scripts(const Value&, PartCount&) {
  return [](Pieces& text, Budget&) { split(text, script_run, Behavior::removed, true); };
}

PreTokenizer sequence(const Value& section, PartCount& parts) {
  std::vector<PreTokenizer> all;
  const Value list = section["pretokenizers"];
  for (std::size_t i = 0; i < list.array().size(); ++i) all.push_back(read_part(list[i], parts));
  return [all = std::move(all)](Pieces& text, Budget& budget) {
    for (const PreTokenizer& each : all) each(text, budget);
  };
}

struct Kind {
  PreTokenizer (*read)(const Value&, PartCount&);
  std::uint64_t cost = 4;  // steps per character
};

constexpr Named<Kind> kKindsOfPreTokenizers[] = {
    {"BertPreTokenizer", {bert}},
    {"Whitespace", {whitespace}},
    {"WhitespaceSplit", {whitespace_split}},
    {"ByteLevel", {byte_level}},
    {"Metaspace", {metaspace}},
    {"Punctuation", {punctuation}},
    {"Digits", {digits}},
    {"Split", {split_at}},
    {"CharDelimiterSplit", {char_delimiter}},
    {"FixedLength", {fixed_length}},
    {"UnicodeScripts", {unicode_scripts, 8}},
    {"Sequence", {sequence, 0}},
};

PreTokenizer read_part(const Value& section, PartCount& parts) {
  parts.add(section);
  const Kind& kind = choose(kKindsOfPreTokenizers, section["type"]);
  return [pre_tokenizer = kind.read(section, parts), cost = kind.cost](Pieces& text, Budget& budget) {
    spend(text, budget, cost);
    pre_tokenizer(text, budget);
  };
}

}  // namespace

PreTokenizer read_pre_tokenizer(const Value& section) {
  PartCount parts(kMaxPreTokenizers);
  return read_part(section, parts);
}

}  // namespace attn::detail
