#include "attn/io/word_piece.hpp"

#include <algorithm>

#include "attn/tensor/error.hpp"

namespace attn::detail {

Trie::Trie(std::vector<std::pair<std::u32string, std::int32_t>> words) {
  std::int64_t characters = 1;
  for (const auto& [word, id] : words) characters += static_cast<std::int64_t>(word.size());
  MemoryEstimate memory("tokenizer");
  memory.add("the vocabulary", {characters, 7});  // 12 bytes a node, and 16 while they are made
  memory.check("the vocabulary");

  if (!std::is_sorted(words.begin(), words.end())) std::sort(words.begin(), words.end());
  struct Range {
    std::size_t first, last;  // of the words that go through a node
  };
  std::vector<Range> ranges{{0, words.size()}};
  labels_.push_back(0);
  std::size_t depth = 0, level_end = 1;
  for (std::size_t node = 0; node < ranges.size(); ++node) {
    if (node == level_end) {
      ++depth;
      level_end = ranges.size();
    }
    auto [first, last] = ranges[node];
    const bool ends_here = first < last && words[first].first.size() == depth;
    ids_.push_back(ends_here ? words[first].second : -1);
    first_child_.push_back(static_cast<Node>(ranges.size()));
    while (first < last && words[first].first.size() == depth) ++first;
    while (first < last) {
      const char32_t label = words[first].first[depth];
      std::size_t next = first + 1;
      while (next < last && words[next].first[depth] == label) ++next;
      ranges.push_back({first, next});
      labels_.push_back(label);
      first = next;
    }
  }
  first_child_.push_back(static_cast<Node>(ranges.size()));
}

std::optional<Trie::Node> Trie::child(Node node, char32_t code) const {
  const auto first = labels_.begin() + first_child_[node], last = labels_.begin() + first_child_[node + 1];
  const auto found = std::lower_bound(first, last, code);
  if (found == last || *found != code) return std::nullopt;
  return static_cast<Node>(found - labels_.begin());
}

std::optional<Trie::Node> Trie::find(std::u32string_view word) const {
  Node node = root();
  for (const char32_t code : word) {
    const std::optional<Node> next = child(node, code);
    if (!next) return std::nullopt;
    node = *next;
  }
  return node;
}

std::optional<Trie::Match> Trie::longest(std::span<const Char> text, std::uint64_t& steps, Node from) const {
  std::optional<Match> best;
  Node node = from;
  for (std::size_t i = 0; i < text.size(); ++i) {
    ++steps;
    const std::optional<Node> next = child(node, text[i].code);
    if (!next) break;
    node = *next;
    if (ids_[node] >= 0) best = Match{i + 1, ids_[node]};
  }
  return best;
}

WordPiece::WordPiece(Trie vocabulary, std::int32_t unknown, std::u32string_view continuing_prefix, std::size_t max_chars)
    : vocabulary_(std::move(vocabulary)), unknown_(unknown), continuing_(vocabulary_.find(continuing_prefix)), max_chars_(max_chars) {}

void WordPiece::append(std::span<const Char> text, std::size_t start, std::size_t end, std::vector<Piece>& pieces, std::uint64_t& steps) const {
  const std::size_t before = pieces.size();
  bool known = end - start <= max_chars_;
  for (std::size_t at = start; known && at < end;) {
    std::optional<Trie::Match> match;
    if (at == start || continuing_) match = vocabulary_.longest(text.subspan(at, end - at), steps, at == start ? Trie::root() : *continuing_);
    known = match.has_value();
    if (!known) break;
    pieces.push_back({match->id, at, at + match->size});
    at += match->size;
  }
  if (known) return;
  pieces.resize(before);
  pieces.push_back({unknown_, start, end});
}

}  // namespace attn::detail
