#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Words that are tokens as a whole. Takes the vocabulary out of `json`, which is the section.
std::unique_ptr<const Model> read_word_level(const Value& section, Json& json);

}  // namespace attn::detail
