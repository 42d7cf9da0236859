#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "attn/io/tokenizer.hpp"

namespace attn::python {

inline constexpr std::array<std::string_view, 2> kSideNames{"left", "right"};  // in the order of Side

/// attn/_tokenizers.py; parses the files with the first text.
std::shared_ptr<const TextTokenizer> make_tokenizer(std::span<const std::uint8_t> tokenizer_json,
                                                    std::optional<std::span<const std::uint8_t>> tokenizer_config, std::string_view default_class);

}  // namespace attn::python
