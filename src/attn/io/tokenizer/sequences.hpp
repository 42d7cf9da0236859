#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/tokenizer_file.hpp"

namespace attn::detail {

/// Tokens of one text or two as a model takes them, without padding.
struct TokenSequence {
  std::vector<std::int32_t> ids, types;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> texts;         ///< which text each token is of; -1 for those that were added
  std::vector<std::int64_t> starts, ends;  ///< bytes of that text; -1
  std::vector<std::int32_t> words;         ///< the number of its word there; -1
  bool truncated = false;                  ///< whether tokens of the last text are in no sequence

  std::size_t size() const { return ids.size(); }
};

struct SequenceOptions {
  std::int64_t max_length = 0;
  bool truncation = true;
  /// A last text that is too long goes in pieces that have so many tokens in common with the one before, as the library's overflowing tokens; without
  /// it the first piece is all.
  std::optional<std::int64_t> stride = std::nullopt;
  bool add_special_tokens = true;
  std::optional<Side> truncation_side = std::nullopt;  ///< default that of the file
};

/// One text, or a pair, the caller's number `index`. Throws OUT_OF_RANGE for texts that are too long and must not be cut, or that leave no room to
/// the last one; CONFIG for a stride that leaves none; and as Tokenizer.
std::vector<TokenSequence> sequences(std::string_view op, const TokenizerFile& file, std::span<const std::string> texts, std::size_t index,
                                     const SequenceOptions& options);

}  // namespace attn::detail
