#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/tokenizer_file.hpp"

namespace attn::detail {

/// Tokens of one text or a pair as a model's input, without padding.
struct TokenSequence {
  std::vector<std::int32_t> ids, types;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> texts;         ///< text of each token; -1 for special tokens
  std::vector<std::int64_t> starts, ends;  ///< byte range in that text; -1 for special tokens
  std::vector<std::int32_t> words;         ///< index of the word in that text; -1 for special tokens
  bool truncated = false;                  ///< whether tokens of the last text were dropped

  std::size_t size() const { return ids.size(); }
};

struct SequenceOptions {
  std::int64_t max_length = 0;
  bool truncation = true;
  /// If set, a last text that is too long is split into windows with this many tokens in common, like overflowing
  /// tokens in the tokenizers library. Otherwise only the first window is returned.
  std::optional<std::int64_t> stride = std::nullopt;
  bool add_special_tokens = true;
  std::optional<Side> truncation_side = std::nullopt;  ///< default from the file
};

/// Tokenizes one text or a pair, the caller's text number `index`. Throws OUT_OF_RANGE if the texts are too long and
/// `truncation` is false, or if there is no space for the last text; CONFIG if the stride is too large; otherwise as
/// Tokenizer.
std::vector<TokenSequence> sequences(std::string_view op, const TokenizerFile& file, std::span<const std::string> texts, std::size_t index,
                                     const SequenceOptions& options);

}  // namespace attn::detail
