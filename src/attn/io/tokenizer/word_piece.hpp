#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// WordPiece (Wu et al. 2016). Moves the vocabulary out of `json`.
std::unique_ptr<const Model> read_word_piece(const Value& section, Json& json);

}  // namespace attn::detail
