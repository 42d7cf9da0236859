#pragma once

#include <memory>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// The cut with the best sum of scores (Kudo 2018). Takes the vocabulary out of `json`, which is the section.
std::unique_ptr<const Model> read_unigram(const Value& section, Json& json);

}  // namespace attn::detail
