#include "attn/io/tokenizer/post_processor.hpp"

#include <algorithm>
#include <utility>

namespace attn::detail {
namespace {

Template read_template(const Value& value, const Value& special_tokens, bool pair) {
  Template pieces;
  int firsts = 0, seconds = 0;
  std::size_t added = 0;
  for (std::size_t i = 0; i < value.array().size(); ++i) {
    const Value given = value[i], special = given["SpecialToken"], sequence = given["Sequence"];
    TemplatePiece piece;
    if (special.is_there()) {
      const std::string& name = special["id"].string();
      const Value token = special_tokens[name];
      if (!token.is_there()) special["id"].refuse(ErrorCode::format, {"one of special_tokens"}, {"\"", name, "\""});
      // A file can repeat a token with many ids.
      added += std::max({token["ids"].array().size(), token["tokens"].array().size(), std::size_t{1}});
      value.at_most(added, kMaxSpecialTokens, " special tokens");
      for (std::size_t k = 0; k < token["ids"].array().size(); ++k) piece.ids.push_back(token["ids"][k].whole());
      for (std::size_t k = 0; k < token["tokens"].array().size(); ++k) piece.tokens.push_back(token["tokens"][k].token());
      if (piece.ids.size() != piece.tokens.size())
        token["tokens"].refuse(ErrorCode::format, {piece.ids.size(), " tokens, one for each id"}, {piece.tokens.size(), " tokens"});
      piece.type_id = special["type_id"].whole();
    } else {
      const std::string& name = sequence["id"].string();
      if (name != "A" && (name != "B" || !pair)) sequence["id"].refuse(ErrorCode::format, {pair ? "A or B" : "A"}, {"\"", name, "\""});
      piece.kind = name == "A" ? TemplatePiece::Kind::first : TemplatePiece::Kind::second;
      ++(name == "A" ? firsts : seconds);
      piece.type_id = sequence["type_id"].whole();
    }
    pieces.push_back(std::move(piece));
  }
  if (firsts != 1 || seconds != (pair ? 1 : 0))
    value.refuse(ErrorCode::unsupported, {pair ? "A and B once each" : "A once and no B"}, {firsts, " times A and ", seconds, " times B"});
  return pieces;
}

void read_part(const Value& section, PostProcessor& made, PartCount& parts, bool& has_template);

void template_processing(const Value& section, PostProcessor& made) {
  section["special_tokens"].object();
  made.single = read_template(section["single"], section["special_tokens"], false);
  made.pair = read_template(section["pair"], section["special_tokens"], true);
}

void cls_and_sep(const Value& section, PostProcessor& made, std::size_t separators, std::int32_t second_type) {
  const auto special = [&](const char* name, std::int32_t type_id) {
    const Value token = section[name];
    if (token.array().size() != 2) token.refuse(ErrorCode::format, {"a token and its id"}, {token.array().size(), " values"});
    return TemplatePiece{.type_id = type_id, .ids = {token[1].whole()}, .tokens = {token[std::size_t{0}].token()}};
  };
  const TemplatePiece first{.kind = TemplatePiece::Kind::first}, second{.kind = TemplatePiece::Kind::second, .type_id = second_type};
  made.single = made.pair = {special("cls", 0), first, special("sep", 0)};
  if (separators > 1) made.pair.push_back(special("sep", second_type));
  made.pair.insert(made.pair.end(), {second, special("sep", second_type)});
}

void byte_level(const Value& section, PostProcessor& made) {
  const bool trims = section["trim_offsets"].boolean(), prefixed = section["add_prefix_space"].boolean();
  if (trims) made.trims.push_back(prefixed);
}

enum class Kind : std::uint8_t { templates, bert, roberta, byte_level, sequence };
constexpr Named<Kind> kKindsOfPostProcessors[] = {{"TemplateProcessing", Kind::templates},
                                                  {"BertProcessing", Kind::bert},
                                                  {"RobertaProcessing", Kind::roberta},
                                                  {"ByteLevel", Kind::byte_level},
                                                  {"Sequence", Kind::sequence}};

void sequence(const Value& section, PostProcessor& made, PartCount& parts, bool& has_template) {
  const Value list = section["processors"];
  for (std::size_t i = 0; i < list.array().size(); ++i) read_part(list[i], made, parts, has_template);
}

void read_part(const Value& section, PostProcessor& made, PartCount& parts, bool& has_template) {
  parts.add(section);
  const Kind kind = choose(kKindsOfPostProcessors, section["type"]);
  if (kind == Kind::byte_level) return byte_level(section, made);
  if (kind == Kind::sequence) return sequence(section, made, parts, has_template);
  if (std::exchange(has_template, true)) section.refuse(ErrorCode::unsupported, {"one part that adds special tokens"}, {"a second one"});
  if (kind == Kind::templates) return template_processing(section, made);
  if (kind == Kind::bert) return cls_and_sep(section, made, 1, 1);
  byte_level(section, made);
  cls_and_sep(section, made, 2, 0);
}

// Ġ is a space in byte-level tokens.
bool is_space(const Char& c) { return c.code == U'\u0120' || is(c.code, kSpace); }

bool continues(char byte) { return (byte & 0xc0) == 0x80; }

}  // namespace

std::size_t added_by(const Template& pieces) {
  std::size_t added = 0;
  for (const TemplatePiece& piece : pieces) added += piece.ids.size();
  return added;
}

PostProcessor read_post_processor(const Value& section) {
  PostProcessor made;
  PartCount parts(kMaxPostProcessors);
  bool has_template = false;
  read_part(section, made, parts, has_template);
  return made;
}

void trim_offsets(TextTokens& all, const Vocabulary& vocabulary, bool prefixed) {
  for (std::size_t i = 0; i < all.tokens.size(); ++i) {
    Token& token = all.tokens[i];
    const std::string_view text = all.text.of(token);
    const Chars content = decode_utf8(token.number >= 0 ? vocabulary.text(token.number) : token.content).value();
    auto leading = std::find_if_not(content.begin(), content.end(), is_space) - content.begin();
    auto trailing = std::find_if_not(content.rbegin(), content.rend(), is_space) - content.rbegin();
    all.budget.spend(static_cast<std::uint64_t>(1 + leading + trailing));
    if (leading == 1 && prefixed && (i == 0 || token.start == 0)) leading = 0;
    // Forwards at most to `end`, then backwards at most to 0.
    std::size_t start = token.start, end = token.end;
    for (; leading > 0 && start < end; --leading) do
        ++start;
      while (start < text.size() && continues(text[start]));
    start = std::min<std::size_t>(start, end);
    for (; trailing > 0 && end > 0; --trailing) do
        --end;
      while (end > 0 && continues(text[end]));
    if (trailing > 0) end = token.end;
    token.start = static_cast<std::uint32_t>(start);
    token.end = static_cast<std::uint32_t>(std::max(end, start));
  }
}

}  // namespace attn::detail
