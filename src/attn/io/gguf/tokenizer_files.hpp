#pragma once

#include <string>

#include "attn/io/gguf/header.hpp"

namespace attn::detail::gguf {

/// The tokenizer of a GGUF file as files of a Hugging Face folder.
struct TokenizerFiles {
  std::string tokenizer, tokenizer_config;  ///< tokenizer.json, tokenizer_config.json
};

/// Translates byte-level BPE (tokenizer.ggml.model "gpt2") whose tokenizer.ggml.pre is gpt-2, smollm, llama-bpe or qwen2,
/// and SentencePiece (tokenizer.ggml.model "llama").
/// Throws UNSUPPORTED for other tokenizers; FORMAT if metadata is missing or lists disagree.
TokenizerFiles read_tokenizer_files(const Metadata& metadata);

/// Returns generation_config.json: the ids that end a text.
std::string read_generation_config(const Metadata& metadata);

}  // namespace attn::detail::gguf
