#pragma once

#include "attn/io/tokenizer/schema.hpp"

namespace attn::detail {

/// Appends to `added_tokens`, the array of tokenizer.json, the tokens that only the files beside it have, with the flags and in the order with which
/// transformers' from_pretrained adds them: added_tokens_decoder (without it `ids`, which is added_tokens.json) by id, then special tokens by name,
/// then extra_special_tokens. Throws FORMAT, UNSUPPORTED.
void append_other_tokens(Json::Array& added_tokens, const Value& config, const Value& ids);

/// Puts the special tokens of special_tokens_map.json, which may be null, into tokenizer_config.json, as transformers does if that has no
/// added_tokens_decoder; additional_special_tokens becomes extra_special_tokens.
void merge_special_tokens(Json::Object& config, Json map);

}  // namespace attn::detail
