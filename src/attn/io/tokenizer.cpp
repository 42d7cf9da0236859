#include "attn/io/tokenizer.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "attn/io/tokenizer/tokenizer_file.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/interruption.hpp"

namespace attn {
namespace {

using detail::Template;
using detail::TemplatePiece;
using detail::Token;
using detail::TokenizerFile;

constexpr const char* kOp = "tokenize";

using detail::SourceText;
using detail::TextTokens;

struct Row {
  TextTokens first, second;
  bool truncated = false;
};

struct How {
  const Template& pieces;
  bool is_pair, are_words, adds_special;
  Side truncation_side, padding_side;

  std::int64_t added() const { return adds_special ? static_cast<std::int64_t>(detail::added_by(pieces)) : 0; }
};

std::int64_t most_of(const TokenizeOptions& options) { return options.max_length.value_or(std::numeric_limits<std::int64_t>::max()); }

/// longest_first of Hugging Face: truncates the longer text, then both.
void truncate(Row& row, const How& how, std::size_t most) {
  std::size_t n1 = row.first.tokens.size(), n2 = row.second.tokens.size();
  if (n1 + n2 <= most) return;
  row.truncated = true;
  if (!how.is_pair) {
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
  const auto keep = [&](std::vector<Token>& tokens, std::size_t count) {
    if (how.truncation_side == Side::left) tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(count));
    tokens.resize(count);
  };
  keep(row.first.tokens, n1);
  keep(row.second.tokens, n2);
}

template <class RowOrConst, class Special, class Use>
void for_each_token(const How& how, RowOrConst& row, Special special, Use use) {
  for (const TemplatePiece& piece : how.pieces) {
    if (how.adds_special)
      for (std::size_t i = 0; i < piece.ids.size(); ++i) special(piece, i);
    if (piece.kind == TemplatePiece::Kind::special) continue;
    for (auto& token : (piece.kind == TemplatePiece::Kind::first ? row.first : row.second).tokens) use(piece, token);
  }
}

EncodedTexts assemble(const TokenizerFile& file, const How& how, std::vector<Row> rows) {
  std::size_t longest = 0;
  const auto length_of = [added = static_cast<std::size_t>(how.added())](const Row& row) {
    return added + row.first.tokens.size() + row.second.tokens.size();
  };
  for (const Row& row : rows) longest = std::max(longest, length_of(row));
  const Shape shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)};
  MemoryEstimate memory(kOp);
  // Two ids, mask, string, offsets, text and word.
  const std::size_t kBytes = 9 + sizeof(std::string) + sizeof(TokenOffsets::value_type) + sizeof(TokenSequences::value_type) +
                             (how.are_words ? sizeof(TokenWords::value_type) : 0);
  memory.add("ids, tokens and offsets", {shape[0], shape[1], static_cast<std::int64_t>(kBytes / 4)});
  memory.check("ids, tokens and offsets");

  const std::size_t count = rows.size() * longest;
  EncodedTexts encoding{.shape = shape,
                        .input_ids = std::vector<std::int32_t>(count, file.padding.id),
                        .token_type_ids = std::vector<std::int32_t>(count, file.padding.type_id),
                        .attention_mask = std::vector<std::uint8_t>(count, 0),
                        .truncated = {},
                        .tokens = {},
                        .offsets = {},
                        .sequence_ids = {}};
  for (std::size_t b = 0; b < rows.size(); ++b) {
    std::vector<std::string> tokens(longest, file.padding.token);
    TokenOffsets offsets(longest);
    TokenSequences sequences(longest);
    TokenWords words(how.are_words ? longest : 0);
    std::size_t place = how.padding_side == Side::left ? longest - length_of(rows[b]) : 0;
    const auto push = [&](std::int32_t id, std::int32_t type_id, std::string token) {
      encoding.input_ids[b * longest + place] = id;
      encoding.token_type_ids[b * longest + place] = type_id;
      encoding.attention_mask[b * longest + place] = 1;
      tokens[place++] = std::move(token);
    };
    const auto special = [&](const TemplatePiece& piece, std::size_t i) { push(piece.ids[i], piece.type_id, piece.tokens[i]); };
    for_each_token(how, rows[b], special, [&](const TemplatePiece& piece, Token& token) {
      offsets[place] = {token.start, token.end};
      sequences[place] = piece.kind == TemplatePiece::Kind::first ? 0 : 1;
      if (how.are_words) words[place] = token.word;
      push(token.id, piece.type_id, token.number >= 0 ? std::string(file.text_of(token)) : std::move(token.content));
    });
    encoding.tokens.push_back(std::move(tokens));
    encoding.offsets.push_back(std::move(offsets));
    encoding.sequence_ids.push_back(std::move(sequences));
    if (how.are_words) encoding.words.push_back(std::move(words));
    encoding.truncated.push_back(rows[b].truncated);
  }
  return encoding;
}

SourceText source_of(const std::string& text) { return SourceText(std::string_view(text)); }
SourceText source_of(const Words& words) { return SourceText(std::span<const std::string>(words)); }

template <class Text>
constexpr bool kIsPair = requires(const Text& text) { text.second; };

template <class Text>
How how_of(const TokenizerFile& file, const TokenizeOptions& options) {
  const How how{.pieces = kIsPair<Text> ? file.post_processor.pair : file.post_processor.single,
                .is_pair = kIsPair<Text>,
                .are_words = std::is_same_v<Text, Words> || std::is_same_v<Text, std::pair<Words, Words>>,
                .adds_special = options.add_special_tokens,
                .truncation_side = options.truncation_side.value_or(file.truncation_side),
                .padding_side = options.padding_side.value_or(file.padding.side)};
  if (const std::int64_t most = most_of(options), added = how.added(); most < added)
    detail::fail(ErrorCode::out_of_range, kOp, "max_length", {"a number of at least ", added}, {most}, "The special tokens need that many");
  return how;
}

template <class Text>
Row read_row(const TokenizerFile& file, const How& how, const Text& text, std::size_t index, const TokenizeOptions& options) {
  detail::Interruption::poll();
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  constexpr bool kPair = kIsPair<Text>;
  const auto [first, second] = [&] {
    if constexpr (kPair)
      return std::pair(source_of(text.first), source_of(text.second));
    else
      return std::pair(source_of(text), SourceText());
  }();
  const std::int64_t most = most_of(options), added = how.added();
  const auto room = static_cast<std::size_t>(most - added);
  Row row;
  const auto read = [&](std::size_t enough) {
    row.first = file.tokenize(first, index, enough, how.truncation_side);
    if (kPair) row.second = file.tokenize(second, index, enough, how.truncation_side);
  };
  read(options.truncation ? room : kAll);
  // The longer text keeps the odd token, so both must be read completely.
  if (kPair && options.truncation && room % 2 == 1 && row.first.tokens.size() > room && row.second.tokens.size() > room) read(kAll);
  const std::size_t length = row.first.tokens.size() + row.second.tokens.size();
  if (!options.truncation && length > room) {
    ErrorDetail detail;
    detail.emplace("index", static_cast<double>(index));
    detail::fail(ErrorCode::out_of_range, kOp, detail::text({"text ", index}), {"at most ", most, " tokens"},
                 {static_cast<std::int64_t>(length) + added, " tokens long"}, std::move(detail));
  }
  truncate(row, how, room);
  return row;
}

template <class Text>
EncodedTexts encode_rows(const TokenizerFile& file, const std::vector<Text>& texts, std::size_t begin, std::size_t end,
                         const TokenizeOptions& options) {
  const How how = how_of<Text>(file, options);
  std::vector<Row> rows;
  for (std::size_t i = begin; i < end; ++i) {
    Row& row = rows.emplace_back(read_row(file, how, texts[i], i, options));
    file.trim_offsets(row.first);
    file.trim_offsets(row.second);
  }
  return assemble(file, how, std::move(rows));
}

template <class Text>
detail::TextRow encode_ids(const TokenizerFile& file, const Text& text, std::size_t index, const TokenizeOptions& options) {
  const How how = how_of<Text>(file, options);
  const Row read = read_row(file, how, text, index, options);
  detail::TextRow row{.index = index, .truncated = read.truncated};
  const auto push = [&](std::int32_t id, std::int32_t type_id) {
    row.ids.push_back(id);
    row.types.push_back(type_id);
  };
  for_each_token(
      how, read, [&](const TemplatePiece& piece, std::size_t i) { push(piece.ids[i], piece.type_id); },
      [&](const TemplatePiece& piece, const Token& token) { push(token.id, piece.type_id); });
  return row;
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const detail::TokenizerFile> file) : file_(std::move(file)) {}

Tokenizer Tokenizer::parse(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                           std::string_view default_class, const OldTokenFiles& old_files) {
  return Tokenizer(std::make_shared<const TokenizerFile>(detail::read_tokenizer_file(tokenizer_json, tokenizer_config, default_class, old_files)));
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::string>& texts, std::size_t begin, std::size_t end,
                                     const TokenizeOptions& options) const {
  return encode_rows(*file_, texts, begin, end, options);
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                                     const TokenizeOptions& options) const {
  return encode_rows(*file_, pairs, begin, end, options);
}

detail::TextRow Tokenizer::encode_row(const std::string& text, std::size_t index, const TokenizeOptions& options) const {
  return encode_ids(*file_, text, index, options);
}

detail::TextRow Tokenizer::encode_row(const std::pair<std::string, std::string>& pair, std::size_t index, const TokenizeOptions& options) const {
  return encode_ids(*file_, pair, index, options);
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options) const {
  return encode_rows(*file_, texts, 0, texts.size(), options);
}

EncodedTexts Tokenizer::encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options) const {
  return encode_rows(*file_, pairs, 0, pairs.size(), options);
}

EncodedTexts Tokenizer::encode_word_texts(const std::vector<Words>& texts, const TokenizeOptions& options) const {
  return encode_rows(*file_, texts, 0, texts.size(), options);
}

EncodedTexts Tokenizer::encode_word_texts(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options) const {
  return encode_rows(*file_, pairs, 0, pairs.size(), options);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  if (file_->no_decoder) throw Error(*file_->no_decoder);
  MemoryEstimate memory(kOp);
  memory.add("the tokens' texts", {static_cast<std::int64_t>(ids.size()), 2 * sizeof(std::string) / 4});
  memory.check("the tokens' texts");
  std::vector<std::string> tokens;
  std::size_t bytes = 0;
  for (const std::int32_t id : ids) {
    const auto token = file_->id_to_token(id);
    if (!token || (skip_special_tokens && file_->added.is_special(id))) continue;
    bytes += token->size() + 1;
    tokens.emplace_back(*token);
  }
  detail::Budget budget(bytes, "the tokens");
  std::string text;
  if (file_->decoder) file_->decoder(tokens, budget);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !file_->decoder) text += ' ';
    text += tokens[i];
  }
  return file_->cleans_up_spaces ? detail::without_spaces_before_punctuation(std::move(text)) : text;
}

std::optional<std::int64_t> Tokenizer::token_to_id(const std::string& token) const {
  const auto id = file_->token_to_id(token);
  return id ? std::optional<std::int64_t>(*id) : std::nullopt;
}

std::optional<std::string> Tokenizer::id_to_token(std::int64_t id) const {
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  const auto token = file_->id_to_token(static_cast<std::int32_t>(id));
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

std::int64_t Tokenizer::vocabulary_size() const { return static_cast<std::int64_t>(file_->added.size()); }
std::int64_t Tokenizer::pad_id() const { return file_->padding.id; }

bool Tokenizer::lower_cases() const {
  detail::Budget budget(26);
  const detail::Chars lowered = file_->normalizer(detail::decode_utf8("ABCDEFGHIJKLMNOPQRSTUVWXYZ").value(), budget);
  return std::none_of(lowered.begin(), lowered.end(), [](const detail::Char& c) { return c.code >= U'A' && c.code <= U'Z'; });
}

}  // namespace attn
