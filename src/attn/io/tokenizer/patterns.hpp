#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/unicode.hpp"

// Regular expressions of a file are never executed: published ones are recognised by their text and implemented here
// with the character classes of Hugging Face tokenizers.
namespace attn::detail {

/// Returns the end of the match at `at`, or `at`.
using Matcher = std::function<std::size_t(std::span<const Char> text, std::size_t at)>;

inline std::size_t run_of(std::span<const Char> text, std::size_t at, std::uint32_t sets) {
  while (at < text.size() && is(text[at].code, sets)) ++at;
  return at;
}

std::size_t gpt2(std::span<const Char> text, std::size_t at);

struct Pattern {
  Matcher match;
  std::uint64_t cost;  ///< steps per character
};
Pattern read_pattern(const Value& section);

}  // namespace attn::detail
