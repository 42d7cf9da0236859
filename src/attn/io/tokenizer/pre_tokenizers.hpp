#pragma once

#include <functional>

#include "attn/io/tokenizer/pieces.hpp"
#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

using PreTokenizer = std::function<void(Pieces& text, Budget& budget)>;

PreTokenizer read_pre_tokenizer(const Value& section);

}  // namespace attn::detail
