#pragma once

#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// Appends the tokens that only other files contain, with the flags and in the order of transformers' from_pretrained:
/// added_tokens_decoder (otherwise `ids`, the content of added_tokens.json) by id, special tokens by name,
/// extra_special_tokens. Throws FORMAT, UNSUPPORTED.
void append_other_tokens(Json::Array& added_tokens, const Value& config, const Value& ids);

/// Merges special_tokens_map.json (or null) into tokenizer_config.json, as transformers does if it has no
/// added_tokens_decoder.
void merge_special_tokens(Json::Object& config, Json map);

}  // namespace attn::detail
