#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace attn {

/// Token files of older model folders, which transformers ignores if tokenizer_config.json has added_tokens_decoder.
struct OldTokenFiles {
  std::optional<std::span<const std::uint8_t>> special_tokens_map = std::nullopt;  ///< special_tokens_map.json
  std::optional<std::span<const std::uint8_t>> added_tokens = std::nullopt;        ///< added_tokens.json
};

}  // namespace attn
