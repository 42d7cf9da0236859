#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/io/unicode.hpp"

namespace attn::detail {

/// Words by their characters: the longest one that a text begins with is found in one pass over the text.
class Trie {
 public:
  using Node = std::uint32_t;
  struct Match {
    std::size_t size;  ///< in characters
    std::int32_t id;
  };

  Trie() : Trie(std::vector<std::pair<std::u32string, std::int32_t>>()) {}
  /// Of equal words the one of the least id counts. Throws MEMORY.
  explicit Trie(std::vector<std::pair<std::u32string, std::int32_t>> words);

  static constexpr Node root() { return 0; }
  /// The node of `word`, where there is one.
  std::optional<Node> find(std::u32string_view word) const;
  std::optional<std::int32_t> id(Node node) const { return ids_[node] < 0 ? std::nullopt : std::optional(ids_[node]); }
  /// The longest word of one character or more that `text` begins with; its first characters are those that lead to `from`.
  /// Adds the characters that it looks at to `steps`.
  std::optional<Match> longest(std::span<const Char> text, std::uint64_t& steps, Node from = root()) const;

 private:
  std::optional<Node> child(Node node, char32_t code) const;

  // Breadth first, so that the children of a node stand side by side: from first_child_[node] to first_child_[node + 1].
  std::vector<char32_t> labels_;
  std::vector<Node> first_child_;
  std::vector<std::int32_t> ids_;
};

/// A piece of a text: characters [start, end) of its normalised form.
struct Piece {
  std::int32_t id;
  std::size_t start, end;
};

/// Greedy longest-match-first word pieces (Wu et al. 2016).
class WordPiece {
 public:
  WordPiece(Trie vocabulary, std::int32_t unknown, std::u32string_view continuing_prefix, std::size_t max_chars);

  const Trie& vocabulary() const { return vocabulary_; }
  /// Appends the pieces of text[start, end); one unknown piece where a part of it is not in the vocabulary or it is too long.
  void append(std::span<const Char> text, std::size_t start, std::size_t end, std::vector<Piece>& pieces, std::uint64_t& steps) const;

 private:
  Trie vocabulary_;
  std::int32_t unknown_;
  std::optional<Trie::Node> continuing_;  // of the prefix
  std::size_t max_chars_;
};

}  // namespace attn::detail
