#pragma once

#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// Appends tokens that only other files contain, as transformers' from_pretrained: added_tokens_decoder, otherwise
/// `ids` (added_tokens.json), by id, then special tokens by name, then extra_special_tokens.
void append_other_tokens(Json::Array& added_tokens, const Value& config, const Value& ids);

/// Merges special_tokens_map.json or null, as transformers does without added_tokens_decoder.
void merge_special_tokens(Json::Object& config, Json map);

}  // namespace attn::detail
