#include "attn/io/word_piece.hpp"

#include <algorithm>
#include <random>

#include "attn/tensor/error.hpp"

namespace attn::detail {
namespace {

// What a label says beside its code point.
constexpr std::uint32_t kCode = (1U << 21) - 1;
constexpr std::uint32_t kLast = 1U << 21;      // of its row; the id of the word that ends there follows, at the root's -1
constexpr std::uint32_t kBranches = 1U << 22;  // other labels follow it, too
constexpr std::uint32_t kWord = 1U << 23;      // a word ends there, though its row goes on
constexpr char32_t kEnd = 0xffffffff;

/// Drawn once, so that no file can be made of words that collide.
struct Factors {
  std::uint32_t node = std::random_device()() | 1, code = std::random_device()() | 1;
};
const Factors& factors() {
  static const Factors drawn;
  return drawn;
}

}  // namespace

Trie::Trie(std::size_t words, std::size_t characters) {
  MemoryEstimate memory("tokenizer");
  memory.add("the vocabulary", {static_cast<std::int64_t>(characters + 6 * words + 5)});
  memory.check("the vocabulary");
  labels_.reserve(characters + words + 2);
  branches_.resize(words + words / 2 + 1);
  labels_ = {kLast, static_cast<std::uint32_t>(-1)};
}

void Trie::add(std::u32string_view word, std::int32_t id) {
  Node node = root();
  std::size_t i = 0;
  for (; i < word.size(); ++i) {
    const Node next = child(node, word[i]);
    if (next == 0) break;
    node = next;
  }
  if (i < word.size()) {
    labels_[node] |= kBranches;
    set_branch(node, word[i], static_cast<std::uint32_t>(labels_.size()));
    labels_.insert(labels_.end(), word.begin() + static_cast<std::ptrdiff_t>(i), word.end());
    labels_.back() |= kLast;
    labels_.push_back(static_cast<std::uint32_t>(id));
    return;
  }
  if (const auto known = this->id(node); known && *known <= id) return;
  if ((labels_[node] & kLast) != 0) {
    labels_[node + 1] = static_cast<std::uint32_t>(id);
  } else {
    labels_[node] |= kWord;
    set_branch(node, kEnd, static_cast<std::uint32_t>(id) + 1);
  }
}

std::size_t Trie::slot(Node node, char32_t code) const {
  const std::uint32_t hash = node * factors().node + code * factors().code;
  std::size_t at = static_cast<std::size_t>(std::uint64_t{hash} * branches_.size() >> 32);
  while (branches_[at].value != 0 && (branches_[at].node != node || branches_[at].code != code)) at = at + 1 < branches_.size() ? at + 1 : 0;
  return at;
}

Trie::Node Trie::child(Node node, char32_t code) const {
  const std::uint32_t label = labels_[node];
  if ((label & kLast) == 0 && (labels_[node + 1] & kCode) == code) return node + 1;
  return (label & kBranches) != 0 ? branch(node, code) : 0;
}

std::optional<std::int32_t> Trie::id(Node node) const {
  std::int32_t id = -1;
  if ((labels_[node] & kLast) != 0)
    id = static_cast<std::int32_t>(labels_[node + 1]);
  else if ((labels_[node] & kWord) != 0)
    id = static_cast<std::int32_t>(branch(node, kEnd) - 1);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<Trie::Node> Trie::find(std::u32string_view word) const {
  Node node = root();
  for (const char32_t code : word)
    if ((node = child(node, code)) == 0) return std::nullopt;
  return node;
}

std::optional<Trie::Match> Trie::longest(std::span<const Char> text, std::uint64_t& steps, Node from) const {
  std::optional<Match> best;
  Node node = from;
  for (std::size_t i = 0; i < text.size(); ++i) {
    ++steps;
    if ((node = child(node, text[i].code)) == 0) break;
    if (const auto word = id(node)) best = Match{i + 1, *word};
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
