#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/unicode.hpp"

// Search patterns of a file. Its regular expressions are never executed: those of published tokenizers are recognised
// by their text and implemented here, with the letters, numbers and spaces of the Hugging Face tokenizers library.
namespace attn::detail {

/// Returns the end of the match at a position, or the position if there is none.
using Matcher = std::function<std::size_t(std::span<const Char> text, std::size_t at)>;

/// Returns the end of the run of characters in these sets that begins at `at`.
inline std::size_t run_of(std::span<const Char> text, std::size_t at, std::uint32_t sets) {
  while (at < text.size() && is(text[at].code, sets)) ++at;
  return at;
}

/// Matches the words of GPT-2: a contraction; letters, digits or other characters, each with the space before them;
/// white space.
std::size_t gpt2(std::span<const Char> text, std::size_t at);

struct Pattern {
  Matcher match;
  std::uint64_t cost;  ///< steps per character
};
/// Reads the "pattern" of a section: {"String": …} or {"Regex": …}.
Pattern read_pattern(const Value& section);

}  // namespace attn::detail
