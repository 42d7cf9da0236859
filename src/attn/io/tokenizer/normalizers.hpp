#pragma once

#include <functional>

#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/unicode.hpp"

namespace attn::detail {

using Normalizer = std::function<Chars(Chars text, Budget& budget)>;

Normalizer read_normalizer(const Value& section);

}  // namespace attn::detail
