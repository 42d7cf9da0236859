#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// What makes a text of tokens again: parts of it, one after the other.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string> tokens)>;

/// Of a section that may be missing: spaces between the tokens. One that attn does not have, or that is none, throws UNSUPPORTED or FORMAT when it
/// is asked for a text: to make tokens of texts it is not needed.
Decoder read_decoder(const Value& section);

/// Without the spaces that English does not have (transformers' clean_up_tokenization).
std::string clean_up(std::string text);

}  // namespace attn::detail
