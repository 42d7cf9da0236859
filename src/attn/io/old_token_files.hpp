#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace attn {

/// Files in which folders have tokens if their tokenizer_config.json has no added_tokens_decoder; with one, transformers ignores them.
struct OldTokenFiles {
  std::optional<std::span<const std::uint8_t>> special_tokens_map = std::nullopt;  ///< special_tokens_map.json
  std::optional<std::span<const std::uint8_t>> added_tokens = std::nullopt;        ///< added_tokens.json
};

}  // namespace attn
