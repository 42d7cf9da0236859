#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// WordPiece: greedy longest match (Wu et al. 2016). Takes the vocabulary out of `json`, which is the section.
std::unique_ptr<const Model> read_word_piece(const Value& section, Json& json);

}  // namespace attn::detail
