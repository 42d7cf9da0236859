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

struct TemplatePiece {
  enum class Kind : std::uint8_t { special, first, second };
  Kind kind = Kind::special;
  std::int32_t type_id = 0;
  std::vector<std::int32_t> ids = {};
  std::vector<std::string> tokens = {};
};
using Template = std::vector<TemplatePiece>;

std::size_t added_by(const Template& pieces);

struct PostProcessor {
  Template single = {{.kind = TemplatePiece::Kind::first}};
  Template pair = {{.kind = TemplatePiece::Kind::first}, {.kind = TemplatePiece::Kind::second, .type_id = 1}};
  /// For each part that trims offsets, whether a space was inserted before the first word.
  std::vector<bool> trims = {};
};

PostProcessor read_post_processor(const Value& section);

/// Excludes white space at both ends, except a space inserted before the first word (`prefixed`).
void trim_offsets(TextTokens& text, const Vocabulary& vocabulary, bool prefixed);

}  // namespace attn::detail
