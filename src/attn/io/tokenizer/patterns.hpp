#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/unicode.hpp"

// What a file may ask to look for. A regular expression of a file is never run: the ones that published tokenizers have are known by their text, and
// written out here, with Hugging Face's own letters, numbers and spaces.
namespace attn::detail {

/// The end of what matches at a place of a text, or the place itself.
using Matcher = std::function<std::size_t(std::span<const Char> text, std::size_t at)>;

/// The end of a run of characters of these sets, from a place on.
inline std::size_t run_of(std::span<const Char> text, std::size_t at, std::uint32_t sets) {
  while (at < text.size() && is(text[at].code, sets)) ++at;
  return at;
}

/// The words of GPT-2: a contraction; letters, digits or other characters, each with the space before them; white space.
std::size_t gpt2(std::span<const Char> text, std::size_t at);

struct Pattern {
  Matcher match;
  std::uint64_t cost;  ///< steps for each character of a text
};
/// The "pattern" of a section: {"String": …} or {"Regex": …}.
Pattern read_pattern(const Value& section);

}  // namespace attn::detail
