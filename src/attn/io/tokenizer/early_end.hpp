#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attn/io/side.hpp"
#include "attn/io/tokenizer/added_tokens.hpp"
#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/schema.hpp"

// The end of a long text that is cut need not be read. There are places where what went before becomes the same tokens whatever follows, if all parts
// of the tokenizer are known to be so: none of them looks across that place, and one of them cuts there. Between words that is a space between
// letters. In Chinese, Japanese, Thai and the like it is between two letters, if the normalizer puts a space there, or the model knows which tokens
// are certain before the rest of a word; or it is before a comma or full stop, if the pre-tokenizer ends a run of letters there. The package has the
// same (web/lib/src/tokenizer/early_end.ts).
namespace attn::detail {

/// What the normalizer has to leave between the characters around a place without a space, so that the text behind it may be left unread.
enum class Unspaced : std::uint8_t {
  none,         ///< there are no such places
  spaces,       ///< one or more
  punctuation,  ///< nothing, and no word has the second character
  open_word,    ///< nothing: the word goes on
};

/// The sides of a text that may be left unread where there is a space, and what may be left where there is none.
struct EarlyEnd {
  bool left = false, right = false;
  Unspaced unspaced = Unspaced::none;

  bool has(Side side) const { return side == Side::left ? left : right || unspaced != Unspaced::none; }
};

/// Of a file's sections, which may be missing; `open_words`: whether the model takes the beginning of a word.
EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added, bool open_words);

/// A place, and whether a word goes on behind it.
struct TextPlace {
  std::size_t at;
  bool is_open = false;
};
/// The first such place from that byte on, if it is among those that are looked at.
std::optional<TextPlace> early_end_from(const EarlyEnd& ends, const Normalizer& normalize, std::string_view text, std::size_t from, Side side);

}  // namespace attn::detail
