#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Byte pair encoding (Sennrich et al. 2016). Moves the vocabulary out of `json`.
std::unique_ptr<const Model> read_bpe(const Value& section, Json& json);

}  // namespace attn::detail
