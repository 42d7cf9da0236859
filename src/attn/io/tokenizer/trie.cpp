#include "attn/io/tokenizer/trie.hpp"

#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {
namespace {

// A label is a code point with these flags.
constexpr std::uint32_t kCode = (1U << 21) - 1;
constexpr std::uint32_t kLast = 1U << 21;      // last of its row; the number of the word follows, at the root -1
constexpr std::uint32_t kBranches = 1U << 22;  // has other next labels
constexpr std::uint32_t kEndsWord = 1U << 23;  // a word ends within the row
constexpr std::uint32_t kEnd = 0xffffffff;

std::size_t checked(std::size_t words, std::size_t characters) {
  if (characters > kMaxCharacters)
    fail(ErrorCode::unsupported, "tokenizer.json", "the vocabulary", {"at most ", kMaxCharacters, " characters"}, {characters, " characters"});
  MemoryEstimate memory("tokenizer");
  memory.add("the vocabulary", {static_cast<std::int64_t>(characters + 6 * words + 5)});
  memory.check("the vocabulary");
  return words;
}

}  // namespace

Trie::Trie(std::size_t words, std::size_t characters) : branches_(checked(words, characters)) {
  labels_.reserve(characters + words + 2);
  labels_ = {kLast, static_cast<std::uint32_t>(-1)};
}

void Trie::add(std::u32string_view word, std::int32_t number) {
  Node node = root();
  std::size_t i = 0;
  for (; i < word.size(); ++i) {
    const Node next = child(node, word[i]);
    if (next == 0) break;
    node = next;
  }
  const auto value = static_cast<std::uint32_t>(number);
  if (i < word.size()) {
    labels_[node] |= kBranches;
    branches_.set(node, word[i], static_cast<std::uint32_t>(labels_.size()));
    labels_.insert(labels_.end(), word.begin() + static_cast<std::ptrdiff_t>(i), word.end());
    labels_.back() |= kLast;
    labels_.push_back(value);
  } else if ((labels_[node] & kLast) != 0) {
    labels_[node + 1] = value;
  } else {
    labels_[node] |= kEndsWord;
    branches_.set(node, kEnd, value + 1);
  }
}

Trie::Node Trie::child(Node node, char32_t code) const {
  const std::uint32_t label = labels_[node];
  if ((label & kLast) == 0 && (labels_[node + 1] & kCode) == code) return node + 1;
  return (label & kBranches) != 0 ? branches_.get(node, code) : 0;
}

std::optional<Trie::Node> Trie::find(std::u32string_view word, Node from) const {
  Node node = from;
  for (const char32_t code : word)
    if ((node = child(node, code)) == 0) return std::nullopt;
  return node;
}

std::int32_t Trie::number(Node node) const {
  if ((labels_[node] & kLast) != 0) return static_cast<std::int32_t>(labels_[node + 1]);
  return (labels_[node] & kEndsWord) != 0 ? static_cast<std::int32_t>(branches_.get(node, kEnd) - 1) : -1;
}

}  // namespace attn::detail
