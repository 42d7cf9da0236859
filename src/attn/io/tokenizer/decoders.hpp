#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn/io/tokenizer/budget.hpp"
#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// What tokens become, to be put together without anything between them.
using Decoder = std::function<void(std::vector<std::string>& tokens, Budget& budget)>;

/// Throws FORMAT, UNSUPPORTED for other kinds.
Decoder read_decoder(const Value& section);

/// As transformers takes spaces out that stand before punctuation in English.
std::string without_spaces_before_punctuation(std::string text);

}  // namespace attn::detail
