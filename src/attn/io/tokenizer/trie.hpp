#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/pair_map.hpp"

namespace attn::detail {

/// A node is the index of the label that leads to it. A word shares first labels with earlier words; the rest is a row
/// that ends with its number: four bytes per character. A hash table has branches, and words within rows.
class Trie {
 public:
  using Node = std::uint32_t;

  Trie() : Trie(0, 0) {}
  /// `characters` of all words together.
  Trie(std::size_t words, std::size_t characters);

  /// The last of equal words counts.
  void add(std::u32string_view word, std::int32_t number);

  static constexpr Node root() { return 0; }
  /// 0 if there is none.
  Node child(Node node, char32_t code) const;
  std::optional<Node> find(std::u32string_view word, Node from = root()) const;
  /// -1 if no word ends there.
  std::int32_t number(Node node) const;

 private:
  std::vector<std::uint32_t> labels_;
  PairMap branches_;  // (node, next character) → next node; (node, kEnd) → number of the word + 1
};

}  // namespace attn::detail
