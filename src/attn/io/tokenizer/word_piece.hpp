#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Reads a WordPiece model: greedy longest match (Wu et al. 2016). Moves the vocabulary out of `json`, the same
/// section.
std::unique_ptr<const Model> read_word_piece(const Value& section, Json& json);

}  // namespace attn::detail
