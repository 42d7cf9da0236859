#pragma once

#include "attn/io/tokenizer/normalizers.hpp"

namespace attn::detail {

/// Reads the normalisation rules of sentencepiece, compiled into a double array and a block of replacements.
Normalizer read_precompiled(const Value& section);

}  // namespace attn::detail
