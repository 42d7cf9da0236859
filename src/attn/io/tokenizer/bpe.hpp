#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Reads a byte pair encoding model (Sennrich et al. 2016), of characters or bytes. Moves the vocabulary out of `json`,
/// the same section.
std::unique_ptr<const Model> read_bpe(const Value& section, Json& json);

}  // namespace attn::detail
