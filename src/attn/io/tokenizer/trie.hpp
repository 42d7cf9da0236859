#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/pair_map.hpp"

namespace attn::detail {

/// Words by their characters, each with a number.
///
/// A node is the place of the label that leads to it. A word shares the labels of those before it as far as it goes and puts what is left of it in a
/// row, with its number at the end: four bytes a character. Where a row is left, or a word ends within one, is in a hash table.
class Trie {
 public:
  using Node = std::uint32_t;

  Trie() : Trie(0, 0) {}
  /// For so many words, of so many characters together. Throws UNSUPPORTED, MEMORY.
  Trie(std::size_t words, std::size_t characters);

  /// Of equal words the last one counts.
  void add(std::u32string_view word, std::int32_t number);

  static constexpr Node root() { return 0; }
  /// 0 where there is none: the root is no child.
  Node child(Node node, char32_t code) const;
  /// The node of `word`, where there is one.
  std::optional<Node> find(std::u32string_view word, Node from = root()) const;
  /// Of the word that ends there; -1 where none does.
  std::int32_t number(Node node) const;

 private:
  std::vector<std::uint32_t> labels_;
  PairMap branches_;  // by a node and the next character the node that it leads to, or by kEnd the number of a word and one more
};

}  // namespace attn::detail
