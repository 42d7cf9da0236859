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
///
/// A node is the place of the label that leads to it. A word shares the labels of those before it as far as it goes and puts what is left of it in a
/// row, with its id at the end: four bytes a character. Where a row is left, or a word ends within one, is in a hash table.
class Trie {
 public:
  using Node = std::uint32_t;
  struct Match {
    std::size_t size;  ///< in characters
    std::int32_t id;
  };

  Trie() : Trie(0, 0) {}
  /// For so many words, of so many characters together. Throws MEMORY.
  Trie(std::size_t words, std::size_t characters);

  /// Of equal words the one of the least id counts.
  void add(std::u32string_view word, std::int32_t id);

  static constexpr Node root() { return 0; }
  /// The node of `word`, where there is one.
  std::optional<Node> find(std::u32string_view word) const;
  std::optional<std::int32_t> id(Node node) const;
  /// The longest word of one character or more that `text` begins with; its first characters are those that lead to `from`.
  /// Adds the characters that it looks at to `steps`.
  std::optional<Match> longest(std::span<const Char> text, std::uint64_t& steps, Node from = root()) const;

 private:
  /// Where another row goes on from a node, or, by a code that no character has, the id of a word that ends there and one more. 0: there is none.
  struct Branch {
    Node node = 0;
    char32_t code = 0;
    std::uint32_t value = 0;
  };

  /// 0 where there is none: the root is no child.
  Node child(Node node, char32_t code) const;
  std::size_t slot(Node node, char32_t code) const;
  std::uint32_t branch(Node node, char32_t code) const { return branches_[slot(node, code)].value; }
  void set_branch(Node node, char32_t code, std::uint32_t value) { branches_[slot(node, code)] = {node, code, value}; }

  std::vector<std::uint32_t> labels_;
  std::vector<Branch> branches_;  // open addressing
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
