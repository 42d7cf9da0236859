#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/model.hpp"
#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/source_text.hpp"

namespace attn::detail {

/// A place of a template: special tokens, or one of the texts.
struct TemplatePiece {
  enum class Kind : std::uint8_t { special, first, second };
  Kind kind = Kind::special;
  std::int32_t type_id = 0;
  std::vector<std::int32_t> ids = {};
  std::vector<std::string> tokens = {};
};
using Template = std::vector<TemplatePiece>;

/// How many tokens it puts around the texts.
std::size_t added_by(const Template& pieces);

/// What becomes of the tokens of a text, or of a pair of them.
struct PostProcessor {
  Template single = {{.kind = TemplatePiece::Kind::first}};
  Template pair = {{.kind = TemplatePiece::Kind::first}, {.kind = TemplatePiece::Kind::second, .type_id = 1}};
  /// What takes white space off offsets, one after the other: whether a space was put before the first word.
  std::vector<bool> trims = {};
};

/// Throws FORMAT, UNSUPPORTED for other kinds.
PostProcessor read_post_processor(const Value& section);

/// White space at the ends of a token is not of its offsets, but for the one space that was put before the first word.
void trim_offsets(TextTokens& text, const Vocabulary& vocabulary, bool prefixed);

}  // namespace attn::detail
