#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attn/io/side.hpp"
#include "attn/io/tokenizer/added_tokens.hpp"
#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/schema.hpp"

// Finds places in a long text after which nothing affects the tokens before them, so that a truncated end is not read.
// All parts of the tokenizer must be known to allow this: none of them looks across the place, and one of them splits
// there. Between words, such a place is a space between letters. In Chinese, Japanese, Thai and similar scripts it is
// between two letters, if the normalizer inserts a space there, or if the model can determine the tokens that do not
// depend on the rest of a word; or it is before a comma or full stop, if the pre-tokenizer ends a run of letters there.
// The package has the same rules (web/lib/src/tokenizer/early_end.ts).
namespace attn::detail {

/// Required output of the normalizer between the two characters around a place without a space, so that the text after
/// it need not be read.
enum class Unspaced : std::uint8_t {
  none,         ///< there are no such places
  spaces,       ///< one or more spaces
  punctuation,  ///< nothing, and the second character is not part of a word
  open_word,    ///< nothing; the word continues
};

/// Sides of a text that may be skipped at a space, and the condition for skipping at a place without a space.
struct EarlyEnd {
  bool left = false, right = false;
  Unspaced unspaced = Unspaced::none;

  bool has(Side side) const { return side == Side::left ? left : right || unspaced != Unspaced::none; }
};

/// Determines the places from the sections of a tokenizer file, which may be missing. `open_words`: whether the model
/// supports words that continue.
EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added, bool open_words);

/// A byte offset, and whether a word continues after it.
struct TextPlace {
  std::size_t at;
  bool is_open = false;
};
/// Returns the first such place at or after byte `from`, or nothing if it is not among the places that are tried.
std::optional<TextPlace> early_end_from(const EarlyEnd& ends, const Normalizer& normalize, std::string_view text, std::size_t from, Side side);

}  // namespace attn::detail
