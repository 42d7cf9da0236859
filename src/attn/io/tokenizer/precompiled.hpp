#pragma once

#include "attn/io/tokenizer/normalizers.hpp"

namespace attn::detail {

/// SentencePiece's normalisation rules: a double array and a block of replacements.
Normalizer read_precompiled(const Value& section);

}  // namespace attn::detail
