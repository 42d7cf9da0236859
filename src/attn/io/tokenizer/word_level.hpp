#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Moves the vocabulary out of `json`.
std::unique_ptr<const Model> read_word_level(const Value& section, Json& json);

}  // namespace attn::detail
