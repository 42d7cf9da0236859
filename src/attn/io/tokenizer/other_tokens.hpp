#pragma once

#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// Appends to `added_tokens`, the array of tokenizer.json, the tokens that only other files of the folder contain, with
/// the flags and in the order of transformers' from_pretrained: added_tokens_decoder (without it `ids`, the content of
/// added_tokens.json) by id, then special tokens by name, then extra_special_tokens. Throws FORMAT, UNSUPPORTED.
void append_other_tokens(Json::Array& added_tokens, const Value& config, const Value& ids);

/// Merges `map`, special_tokens_map.json or null, into tokenizer_config.json, as transformers does if the latter has no
/// added_tokens_decoder. additional_special_tokens becomes extra_special_tokens.
void merge_special_tokens(Json::Object& config, Json map);

}  // namespace attn::detail
