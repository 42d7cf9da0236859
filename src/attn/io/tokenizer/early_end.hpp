#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attn/io/side.hpp"
#include "attn/io/tokenizer/added_tokens.hpp"
#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/schema.hpp"

// Finds places in a long text after which nothing affects the tokens before them, so that a truncated end is not read:
// no part of the tokenizer looks across the place, and one splits there. That is a space between letters; in Chinese,
// Japanese, Thai and similar scripts between two letters, if the normalizer inserts a space or the model knows which
// tokens do not depend on the rest, or before punctuation, if the pre-tokenizer splits there.
// web/lib/src/tokenizer/early_end.ts is the counterpart.
namespace attn::detail {

/// Output of the normalizer that a place without a space requires between its two characters.
enum class Unspaced : std::uint8_t {
  none,
  spaces,
  punctuation,  ///< nothing; the second character is no part of a word
  open_word,    ///< nothing; the word continues
};

/// Sides that may be skipped at a space, and the condition at other places.
struct EarlyEnd {
  bool left = false, right = false;
  Unspaced unspaced = Unspaced::none;

  bool has(Side side) const { return side == Side::left ? left : right || unspaced != Unspaced::none; }
};

/// Sections may be missing. `open_words`: Model::takes_open_words().
EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added, bool open_words);

/// `is_open`: a word continues after the byte offset `at`.
struct TextPlace {
  std::size_t at;
  bool is_open = false;
};
/// Returns the first place found at or after byte `from`; only some places are tried.
std::optional<TextPlace> early_end_from(const EarlyEnd& ends, const Normalizer& normalize, std::string_view text, std::size_t from, Side side);

}  // namespace attn::detail
