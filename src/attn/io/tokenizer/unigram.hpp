#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Reads a unigram model (Kudo 2018): the split with the highest sum of scores. Moves the vocabulary out of `json`, the
/// same section.
std::unique_ptr<const Model> read_unigram(const Value& section, Json& json);

}  // namespace attn::detail
