#pragma once

#include <functional>

#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/unicode.hpp"

namespace attn::detail {

/// What a text becomes before it is cut into words.
using Normalizer = std::function<Chars(Chars text, Budget& budget)>;

/// Throws FORMAT, UNSUPPORTED for other kinds.
Normalizer read_normalizer(const Value& section);

}  // namespace attn::detail
