#pragma once

#include <string>

#include "attn/io/gguf/header.hpp"

namespace attn::detail::gguf {

struct TokenizerFiles {
  std::string tokenizer, tokenizer_config;
};

/// Supports byte-level BPE with tokenizer.ggml.pre gpt-2, smollm, llama-bpe or qwen2, and SentencePiece. Throws
/// UNSUPPORTED for others; FORMAT if metadata is missing or lists disagree.
TokenizerFiles read_tokenizer_files(const Metadata& metadata);

std::string read_generation_config(const Metadata& metadata);

}  // namespace attn::detail::gguf
