#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/tokenizer_file.hpp"

namespace attn::detail {

struct TokenSequence {
  std::vector<std::int32_t> ids, types;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> texts;         ///< -1 for special tokens
  std::vector<std::int64_t> starts, ends;  ///< bytes in that text; -1 for special tokens
  std::vector<std::int32_t> words;         ///< index in that text; -1 for special tokens
  bool truncated = false;                  ///< tokens of the last text were dropped

  std::size_t size() const { return ids.size(); }
};

struct SequenceOptions {
  std::int64_t max_length = 0;
  bool truncation = true;
  /// Splits a long last text into windows with this many common tokens (overflowing tokens in Hugging Face). Otherwise
  /// only the first is returned.
  std::optional<std::int64_t> stride = std::nullopt;
  bool add_special_tokens = true;
  std::optional<Side> truncation_side = std::nullopt;  ///< default: from the file
};

/// Throws OUT_OF_RANGE if the texts are too long without truncation or leave no space for the last; CONFIG if the
/// stride is too large.
std::vector<TokenSequence> sequences(std::string_view op, const TokenizerFile& file, std::span<const std::string> texts, std::size_t index,
                                     const SequenceOptions& options);

}  // namespace attn::detail
