#include "attn/io/tokenizer.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "attn/io/tokenizer/tokenizer_file.hpp"
#include "attn/tensor/error.hpp"

namespace attn {
namespace {

using detail::Template;
using detail::TemplatePiece;
using detail::Token;
using detail::TokenizerFile;

constexpr const char* kOp = "tokenize";

/// Token ids of one row, as they are put together from one text or two.
struct Row {
  std::vector<Token> first, second;
  bool truncated = false;
};

std::vector<Token> tokens_of(const TokenizerFile& file, std::string_view text, std::size_t index, std::size_t most) {
  detail::Budget budget(detail::count_characters(text));
  std::vector<Token> tokens = file.tokenize(text, index, most, budget);
  file.trim_offsets(text, tokens, budget);
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
  const std::size_t added = detail::added_by(pieces);
  for (const Row& row : rows) longest = std::max(longest, added + row.first.size() + row.second.size());
  const Shape shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)};
  MemoryEstimate memory(kOp);
  // Two ids, a mask, a token's string, its offsets and its text.
  constexpr std::size_t kBytes = 9 + sizeof(std::string) + sizeof(TokenOffsets::value_type) + sizeof(TokenSequences::value_type);
  memory.add("ids, tokens and offsets", {shape[0], shape[1], kBytes / 4});
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
        push(token.id, piece.type_id, token.number >= 0 ? std::string(file.text_of(token)) : std::move(token.content),
             std::pair<std::int64_t, std::int64_t>(token.start, token.end), is_first ? 0 : 1);
    }
    tokens.resize(longest, file.padding.token);
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
  const Template& pieces = is_pair ? file.post_processor.pair : file.post_processor.single;
  const auto added = static_cast<std::int64_t>(detail::added_by(pieces));
  const std::int64_t most = options.max_length.value_or(std::numeric_limits<std::int64_t>::max());
  if (most < added) detail::fail(ErrorCode::out_of_range, kOp, "max_length", {"at least ", added, ", the special tokens"}, {most});
  // One text is cut to its first tokens, whatever follows. Where a pair is cut depends on both lengths.
  const auto room = is_pair || !options.truncation ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(most - added);
  std::vector<Row> rows(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    const auto [first, second] = texts(i);
    Row& row = rows[i - begin];
    row.first = tokens_of(file, first, i, room);
    if (is_pair) row.second = tokens_of(file, second, i, room);
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
