#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "attn/io/tokenizer/unicode.hpp"

namespace attn::detail {

/// [from, to). With `added` ≥ 0 an added token, which later stages do not change.
struct Piece {
  std::size_t from, to;
  std::int32_t added = -1;
};

/// Characters between pieces are removed.
struct Pieces {
  Chars chars;
  std::vector<Piece> pieces;

  std::span<const Char> of(const Piece& piece) const { return std::span(chars).subspan(piece.from, piece.to - piece.from); }
};

enum class Behavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// match(piece, at) returns the end of the match, or `at`. `invert` swaps matches and the rest.
template <class Match>
void split(Pieces& text, const Match& match, Behavior behavior, bool invert = false) {
  std::vector<Piece> out;
  out.reserve(text.pieces.size());
  for (const Piece& piece : text.pieces) {
    if (piece.added >= 0) {
      out.push_back(piece);
      continue;
    }
    const std::span<const Char> chars = text.of(piece);
    bool previous = false;
    const auto cut = [&](std::size_t start, std::size_t end, bool matches) {
      const bool joins = (behavior == Behavior::contiguous && matches == previous && start > 0) ||
                         (behavior == Behavior::merged_with_previous && matches && !previous && start > 0) ||
                         (behavior == Behavior::merged_with_next && !matches && previous);
      if (joins)
        out.back().to = piece.from + end;
      else if (behavior != Behavior::removed || !matches)
        out.push_back({piece.from + start, piece.from + end});
      previous = matches;
    };
    std::size_t start = 0;
    for (std::size_t at = 0; at < chars.size();) {
      const std::size_t end = match(chars, at);
      if (end == at) {
        ++at;
        continue;
      }
      if (start < at) cut(start, at, invert);
      cut(at, end, !invert);
      start = at = end;
    }
    if (start < chars.size()) cut(start, chars.size(), invert);
  }
  text.pieces = std::move(out);
}

template <class Write>
void rewrite(Pieces& text, const Write& write) {
  Chars out;
  out.reserve(text.chars.size());
  for (Piece& piece : text.pieces) {
    const std::span<const Char> chars = text.of(piece);
    const std::size_t from = out.size();
    if (piece.added >= 0)
      out.insert(out.end(), chars.begin(), chars.end());
    else
      write(chars, out);
    piece.from = from;
    piece.to = out.size();
  }
  text.chars = std::move(out);
}

}  // namespace attn::detail
