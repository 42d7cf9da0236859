#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "attn/io/side.hpp"
#include "attn/io/tokenizer/added_tokens.hpp"
#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/schema.hpp"

// The end of a long text that is cut need not be read. Before a space between letters, what went before becomes the same tokens whatever follows, if
// all parts of the tokenizer are known to be so: none of them looks across that place, and one of them cuts there. The package has the same
// (web/lib/src/tokenizer/early_end.ts).
namespace attn::detail {

/// The sides of a text that may be left unread.
struct EarlyEnd {
  bool left = false, right = false;

  bool has(Side side) const { return side == Side::left ? left : right; }
};

/// Of a file's sections, which may be missing.
EarlyEnd read_early_end(const Value& normalizer, const Value& pre_tokenizer, const Normalizer& normalize, const AddedTokens& added);

/// The byte of the first such place from there on.
std::optional<std::size_t> early_end_from(std::string_view text, std::size_t at);

}  // namespace attn::detail
