#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// Unigram (Kudo 2018). Moves the vocabulary out of `json`.
std::unique_ptr<const Model> read_unigram(const Value& section, Json& json);

}  // namespace attn::detail
