#include "attn/io/tokenizer/sequences.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "attn/tensor/error.hpp"

namespace attn::detail {
namespace {

TokenSequence sequence_of(const TokenizerFile& file, std::span<const TextTokens> texts, bool add_special_tokens) {
  TokenSequence made;
  const auto push = [&](std::int32_t id, std::int32_t type, std::string token, std::int32_t text, std::int64_t start, std::int64_t end,
                        std::int32_t word) {
    made.ids.push_back(id);
    made.types.push_back(type);
    made.tokens.push_back(std::move(token));
    made.texts.push_back(text);
    made.starts.push_back(start);
    made.ends.push_back(end);
    made.words.push_back(word);
  };
  for (const TemplatePiece& piece : texts.size() > 1 ? file.post_processor.pair : file.post_processor.single) {
    for (std::size_t i = 0; add_special_tokens && i < piece.ids.size(); ++i) push(piece.ids[i], piece.type_id, piece.tokens[i], -1, -1, -1, -1);
    if (piece.kind == TemplatePiece::Kind::special) continue;
    const std::int32_t text = piece.kind == TemplatePiece::Kind::first ? 0 : 1;
    for (const Token& token : texts[static_cast<std::size_t>(text)].tokens)
      push(token.id, piece.type_id, std::string(file.text_of(token)), text, token.start, token.end, token.word);
  }
  return made;
}

}  // namespace

std::vector<TokenSequence> sequences(std::string_view op, const TokenizerFile& file, std::span<const std::string> texts, std::size_t index,
                                     const SequenceOptions& options) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const std::size_t all_added = added_by(texts.size() > 1 ? file.post_processor.pair : file.post_processor.single);
  const auto added = static_cast<std::int64_t>(options.add_special_tokens ? all_added : 0);
  const Side side = options.truncation_side.value_or(file.truncation_side);
  std::int64_t room = options.max_length - added;
  std::vector<TextTokens> made_of;
  for (const std::string& each : texts.first(texts.size() - 1)) {
    made_of.push_back(file.tokenize(SourceText(each), index, kAll));
    room -= std::ssize(made_of.back().tokens);
  }
  const bool cuts = options.truncation && !options.stride && room > 0;
  made_of.push_back(file.tokenize(SourceText(texts.back()), index, cuts ? static_cast<std::size_t>(room) : kAll, side));
  TextTokens& last = made_of.back();
  const std::vector<Token> all = std::move(last.tokens);
  const std::int64_t count = std::ssize(all);
  if (count > room) {
    ErrorDetail detail;
    detail.emplace("index", static_cast<double>(index));
    if (!options.truncation)
      fail(ErrorCode::out_of_range, op, text({"text ", index}), {"at most ", options.max_length, " tokens"},
           {options.max_length - room + count, " tokens long"}, std::move(detail));
    if (room < 1) {
      detail.emplace("help", "There is no room for the last text");
      fail(ErrorCode::out_of_range, op, "max_length", {"a number of at least ", options.max_length - room + 1}, {options.max_length},
           std::move(detail));
    }
  }
  // For a single text the space is known, so a large stride is refused even for a short text.
  if ((count > room || texts.size() == 1) && options.truncation && options.stride && *options.stride >= room && room > 0)
    fail(ErrorCode::config, op, "stride", {"a number below ", room}, {*options.stride}, "Each window has that many tokens of the text");
  for (TextTokens& before : std::span(made_of).first(made_of.size() - 1)) file.trim_offsets(before);
  std::vector<TokenSequence> made;
  for (std::int64_t from = 0;; from += room - *options.stride) {
    const std::int64_t to = std::min(from + std::max<std::int64_t>(room, 0), count);
    if (side == Side::right)
      last.tokens.assign(all.begin() + from, all.begin() + to);
    else
      last.tokens.assign(all.end() - to, all.end() - from);
    file.trim_offsets(last);
    made.push_back(sequence_of(file, made_of, options.add_special_tokens));
    made.back().truncated = to < count && !options.stride;
    if (to >= count || !options.stride) return made;
  }
}

}  // namespace attn::detail
