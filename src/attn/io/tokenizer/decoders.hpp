#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn/io/tokenizer/budget.hpp"
#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// The resulting texts are joined without separator.
using Decoder = std::function<void(std::vector<std::string>& tokens, Budget& budget)>;

Decoder read_decoder(const Value& section);

std::string without_spaces_before_punctuation(std::string text);

}  // namespace attn::detail
