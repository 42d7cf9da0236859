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
// a space between letters; in scripts without spaces also between two letters, if the normalizer inserts a space or the
// model knows which tokens are final, or before punctuation, if the pre-tokenizer splits there.
// web/lib/src/tokenizer/early_end.ts is the counterpart.
namespace attn::detail {

/// Required output of the normalizer at a place without a space.
enum class Unspaced : std::uint8_t {
  none,
  spaces,
  punctuation,  ///< nothing; the second character is no part of a word
  open_word,    ///< nothing; the word continues
};

struct EarlyEnd {
  bool left = false, right = false;
  Unspaced unspaced = Unspaced::none;

  bool has(Side side) const { return side == Side::left ? left : right || unspaced != Unspaced::none; }
};

EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added, bool open_words);

/// A word continues after byte `at` if `is_open`.
struct TextPlace {
  std::size_t at;
  bool is_open = false;
};
/// Only some places at or after byte `from` are tried.
std::optional<TextPlace> early_end_from(const EarlyEnd& ends, const Normalizer& normalize, std::string_view text, std::size_t from, Side side);

}  // namespace attn::detail
