#include "attn/io/tokenizer.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "attn/io/tokenizer_file.hpp"
#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"

namespace attn {
namespace detail {

Chars BertNormalizer::normalized(Chars text) const {
  if (clean_text) {
    std::erase_if(text, [](const Char& c) { return is_removed(c.code); });
    for (Char& c : text)
      if (is_white_space(c.code)) c.code = U' ';
  }
  if (handle_chinese_chars && std::any_of(text.begin(), text.end(), [](const Char& c) { return is_chinese(c.code); })) {
    Chars spaced;
    for (const Char& c : text) {
      const bool apart = is_chinese(c.code);
      if (apart) spaced.push_back({U' ', c.start, c.end});
      spaced.push_back(c);
      if (apart) spaced.push_back({U' ', c.start, c.end});
    }
    text = std::move(spaced);
  }
  if (strip_accents) {
    text = decomposed(text);
    std::erase_if(text, [](const Char& c) { return is_nonspacing_mark(c.code); });
  }
  if (lowercase) text = lower_case(text);
  return text;
}

}  // namespace detail

namespace {

using detail::AddedToken;
using detail::append_utf8;
using detail::Char;
using detail::Chars;
using detail::code_points;
using detail::is_punctuation;
using detail::is_white_space;
using detail::is_word;
using detail::Piece;
using detail::Template;
using detail::TemplatePiece;
using detail::TokenizerFile;
using detail::Trie;

constexpr const char* kOp = "tokenize";

struct Token {
  std::int32_t id;
  std::uint32_t start, end;  // bytes of the text
  std::string content = {};  // of an added one, as the text has it; else empty, since the vocabulary knows
};

/// One text on its way to tokens.
class Splitter {
 public:
  explicit Splitter(const TokenizerFile& file) : file_(file) {}

  std::vector<Token> split(const Chars& text) {
    most_ = detail::kStepsPerCharacter * text.size() + detail::kMoreSteps;
    at_added(text, file_.added_raw, [&](std::span<const Char> between) {
      const Chars normalized = file_.normalizer.normalized(Chars(between.begin(), between.end()));
      at_added(normalized, file_.added_normalized, [&](std::span<const Char> rest) { words(rest); });
    });
    return std::move(tokens_);
  }

 private:
  /// Appends the added tokens in `text` and hands on what is between them.
  template <class Between>
  void at_added(std::span<const Char> text, const Trie& added, const Between& between) {
    std::size_t taken = 0;
    // How far the white space goes that was last looked through: tokens that begin in it take it along again, as Hugging Face's do.
    std::size_t spaces = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto match = added.longest(text.subspan(at), steps_);
      check_steps();
      if (!match) {
        ++at;
        continue;
      }
      const AddedToken& token = file_.added[static_cast<std::size_t>(match->id)];
      std::size_t first = at, last = at + match->size;
      at = last;
      if (token.single_word && ((first > 0 && is_word(text[first - 1].code)) || (last < text.size() && is_word(text[last].code)))) continue;
      if (token.lstrip) {
        while (first > taken && is_white_space(text[first - 1].code)) --first;
        first = std::max(first, taken);
      }
      if (token.rstrip && last < spaces)
        last = spaces;
      else if (token.rstrip)
        while (last < text.size() && is_white_space(text[last].code)) spaces = ++last;
      if (first >= last) continue;  // all of it went with the token before
      steps_ += last - first;       // what tokens take may overlap
      check_steps();
      if (taken < first) between(text.subspan(taken, first - taken));
      std::string content;
      for (const Char& c : text.subspan(first, last - first)) append_utf8(content, c.code);
      tokens_.push_back({token.id, text[first].start, text[last - 1].end, std::move(content)});
      taken = last;
    }
    if (taken < text.size()) between(text.subspan(taken));
  }

  /// Words are what white space separates; each punctuation mark is one of its own.
  void words(std::span<const Char> text) {
    pieces_.clear();
    std::size_t start = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      const bool white = i < text.size() && is_white_space(text[i].code), mark = i < text.size() && is_punctuation(text[i].code);
      if (i < text.size() && !white && !mark) continue;
      if (start < i) file_.model.append(text, start, i, pieces_, steps_);
      if (mark) file_.model.append(text, i, i + 1, pieces_, steps_);
      check_steps();
      start = i + 1;
    }
    for (const Piece& piece : pieces_) tokens_.push_back({piece.id, text[piece.start].start, text[piece.end - 1].end});
  }

  void check_steps() const {
    if (steps_ > most_)
      detail::fail(ErrorCode::unsupported, kOp, "the text", {"at most ", detail::kStepsPerCharacter, " steps a character"},
                   {"one that takes more than ", most_, " steps by this tokenizer.json"});
  }

  const TokenizerFile& file_;
  std::vector<Token> tokens_;
  std::vector<Piece> pieces_;
  std::uint64_t steps_ = 0, most_ = 0;
};

bool is_space_of_bytes(const Char& c) { return c.code == U'\u0120' || is_white_space(c.code); }  // Ġ, byte-level BPE's space

/// RobertaProcessing's trim_offsets: white space at the ends of a token is left out of its offsets, as many characters of the text.
void trim_offsets(const TokenizerFile& file, const Chars& text, std::vector<Token>& tokens) {
  const auto index = [&](std::uint32_t byte) {
    return std::lower_bound(text.begin(), text.end(), byte, [](const Char& c, std::uint32_t b) { return c.start < b; }) - text.begin();
  };
  const auto byte = [&](std::ptrdiff_t i) { return i == std::ssize(text) ? text.back().end : text[static_cast<std::size_t>(i)].start; };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Token& token = tokens[i];
    const Chars content = detail::decode_utf8(token.content.empty() ? file.tokens[token.id] : token.content).value();
    auto leading = std::find_if_not(content.begin(), content.end(), is_space_of_bytes) - content.begin();
    const auto trailing = std::find_if_not(content.rbegin(), content.rend(), is_space_of_bytes) - content.rbegin();
    if (leading == 0 && trailing == 0) continue;
    // One space at the start may be the one that add_prefix_space has put there.
    if ((i == 0 || token.start == 0) && file.add_prefix_space && leading == 1) leading = 0;
    const std::ptrdiff_t end = index(token.end), start = std::min(index(token.start) + leading, end);
    token.start = byte(start);
    if (end >= trailing) token.end = byte(std::max(end - trailing, start));
  }
}

/// Token ids of one row, as they are put together from one text or two.
struct Row {
  std::vector<Token> first, second;
  bool truncated = false;
};

std::vector<Token> tokens_of(const TokenizerFile& file, std::string_view text, std::size_t index) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    detail::fail(ErrorCode::argument, kOp, detail::text({"text ", index}), {"less than 2^32 bytes"}, {text.size()});
  MemoryEstimate memory(kOp);
  memory.add("the characters of a text", {static_cast<std::int64_t>(text.size()), 12});  // up to four lists of 12 bytes each
  memory.check("the characters of a text");
  const std::optional<Chars> chars = detail::decode_utf8(text);
  if (!chars) {
    ErrorDetail detail;
    detail.emplace("index", static_cast<double>(index));
    detail::fail(ErrorCode::argument, kOp, detail::text({"text ", index}), {"UTF-8"}, {"something else"}, std::move(detail));
  }
  std::vector<Token> tokens = Splitter(file).split(*chars);
  if (file.trim_offsets) trim_offsets(file, *chars, tokens);
  return tokens;
}

/// Leaves `most` tokens at the most: the longer text gives way first, then both (Hugging Face's longest_first).
void truncate(Row& row, bool is_pair, std::size_t most) {
  std::size_t n1 = row.first.size(), n2 = row.second.size();
  if (n1 + n2 <= most) return;
  row.truncated = true;
  if (!is_pair) {
    n1 = most;
  } else {
    const bool swapped = n1 > n2;
    if (swapped) std::swap(n1, n2);
    n2 = n1 > most ? n1 : std::max(n1, most - n1);
    if (n1 + n2 > most) {
      n1 = most / 2;
      n2 = n1 + most % 2;
    }
    if (swapped) std::swap(n1, n2);
  }
  row.first.resize(n1);
  row.second.resize(n2);
}

EncodedTexts assemble(const TokenizerFile& file, const Template& pieces, std::vector<Row> rows) {
  std::size_t longest = 0;
  std::size_t added = 0;
  for (const TemplatePiece& piece : pieces) added += piece.ids.size();
  for (const Row& row : rows) longest = std::max(longest, added + row.first.size() + row.second.size());
  const Shape shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)};
  MemoryEstimate memory(kOp);
  // Two ids, a mask, a token's string, its offsets and its text.
  constexpr std::size_t kBytes = 9 + sizeof(std::string) + sizeof(TokenOffsets::value_type) + sizeof(TokenSequences::value_type);
  memory.add("ids, tokens and offsets", {shape[0], shape[1], kBytes / 4});
  memory.check("ids, tokens and offsets");

  const std::size_t count = rows.size() * longest;
  EncodedTexts encoding{.shape = shape,
                        .input_ids = std::vector<std::int32_t>(count, file.pad_id),
                        .token_type_ids = std::vector<std::int32_t>(count, file.pad_type_id),
                        .attention_mask = std::vector<std::uint8_t>(count, 0),
                        .truncated = {},
                        .tokens = {},
                        .offsets = {},
                        .sequence_ids = {}};
  for (std::size_t b = 0; b < rows.size(); ++b) {
    std::vector<std::string> tokens;
    TokenOffsets offsets;
    TokenSequences sequences;
    tokens.reserve(longest);
    offsets.reserve(longest);
    sequences.reserve(longest);
    const auto push = [&](std::int32_t id, std::int32_t type_id, std::string token, TokenOffsets::value_type bytes,
                          TokenSequences::value_type sequence) {
      const std::size_t at = b * longest + tokens.size();
      encoding.input_ids[at] = id;
      encoding.token_type_ids[at] = type_id;
      encoding.attention_mask[at] = 1;
      tokens.push_back(std::move(token));
      offsets.push_back(bytes);
      sequences.push_back(sequence);
    };
    for (const TemplatePiece& piece : pieces) {
      for (std::size_t i = 0; i < piece.ids.size(); ++i) push(piece.ids[i], piece.type_id, piece.tokens[i], std::nullopt, std::nullopt);
      if (piece.kind == TemplatePiece::Kind::special) continue;
      const bool is_first = piece.kind == TemplatePiece::Kind::first;
      for (Token& token : is_first ? rows[b].first : rows[b].second)
        push(token.id, piece.type_id, token.content.empty() ? std::string(file.tokens[token.id]) : std::move(token.content),
             std::pair<std::int64_t, std::int64_t>(token.start, token.end), is_first ? 0 : 1);
    }
    tokens.resize(longest, file.pad_token);
    offsets.resize(longest);
    sequences.resize(longest);
    encoding.tokens.push_back(std::move(tokens));
    encoding.offsets.push_back(std::move(offsets));
    encoding.sequence_ids.push_back(std::move(sequences));
    encoding.truncated.push_back(rows[b].truncated);
  }
  return encoding;
}

/// `texts(i)` are the one or two texts of number i; a row for each in [begin, end).
template <class Texts>
EncodedTexts encode_rows(const TokenizerFile& file, std::size_t begin, std::size_t end, bool is_pair, const TokenizeOptions& options,
                         const Texts& texts) {
  const Template& pieces = is_pair ? file.pair : file.single;
  std::int64_t added = 0;
  for (const TemplatePiece& piece : pieces) added += static_cast<std::int64_t>(piece.ids.size());
  const std::int64_t most = options.max_length.value_or(std::numeric_limits<std::int64_t>::max());
  if (most < added) detail::fail(ErrorCode::out_of_range, kOp, "max_length", {"at least ", added, ", the special tokens"}, {most});
  std::vector<Row> rows(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    const auto [first, second] = texts(i);
    Row& row = rows[i - begin];
    row.first = tokens_of(file, first, i);
    if (is_pair) row.second = tokens_of(file, second, i);
    const std::size_t length = row.first.size() + row.second.size();
    if (!options.truncation && static_cast<std::int64_t>(length) > most - added) {
      ErrorDetail detail;
      detail.emplace("index", static_cast<double>(i));
      detail::fail(ErrorCode::out_of_range, kOp, detail::text({"text ", i}), {"at most ", most},
                   {static_cast<std::int64_t>(length) + added, " tokens long"}, std::move(detail));
    }
    truncate(row, is_pair, static_cast<std::size_t>(most - added));
  }
  return assemble(file, pieces, std::move(rows));
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const detail::TokenizerFile> file) : file_(std::move(file)) {}

Tokenizer Tokenizer::parse(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                           std::string_view default_class) {
  return Tokenizer(std::make_shared<const TokenizerFile>(detail::read_tokenizer_file(tokenizer_json, tokenizer_config, default_class)));
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::string>& texts, std::size_t begin, std::size_t end,
                                     const TokenizeOptions& options) const {
  return encode_rows(*file_, begin, end, false, options, [&](std::size_t i) { return std::pair<std::string_view, std::string_view>(texts[i], ""); });
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                                     const TokenizeOptions& options) const {
  return encode_rows(*file_, begin, end, true, options, [&](std::size_t i) { return std::pair<std::string_view, std::string_view>(pairs[i]); });
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options) const {
  return encode_texts(texts, 0, texts.size(), options);
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options) const {
  return encode_texts(pairs, 0, pairs.size(), options);
}

std::optional<std::int64_t> Tokenizer::token_to_id(const std::string& token) const {
  if (const auto added = file_->added_ids.find(token); added != file_->added_ids.end()) return added->second;
  const std::optional<Chars> chars = detail::decode_utf8(token);
  if (!chars) return std::nullopt;
  const auto node = file_->model.vocabulary().find(code_points(*chars));
  const auto id = node ? file_->model.vocabulary().id(*node) : std::nullopt;
  return id ? std::optional<std::int64_t>(*id) : std::nullopt;
}

std::optional<std::string> Tokenizer::id_to_token(std::int64_t id) const {
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  const auto number = static_cast<std::int32_t>(id);
  if (const auto found = file_->added_tokens.find(number); found != file_->added_tokens.end()) return found->second;
  const auto token = file_->tokens.find(number);
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

std::int64_t Tokenizer::vocabulary_size() const { return file_->size; }
std::int64_t Tokenizer::pad_id() const { return file_->pad_id; }
bool Tokenizer::lower_cases() const { return file_->normalizer.lowercase; }

}  // namespace attn
