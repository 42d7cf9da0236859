#include "attn/io/tokenizer/vocabulary.hpp"

#include <algorithm>
#include <limits>

#include "attn/io/tokenizer/unicode.hpp"
#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"

namespace attn::detail {

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  if (bytes > 4 * kMaxCharacters)
    fail(ErrorCode::unsupported, "tokenizer.json", "the vocabulary", {"at most ", 4 * kMaxCharacters, " bytes"}, {bytes, " bytes"});
  places_.reserve(tokens);
  bytes_.reserve(bytes);
}

void Vocabulary::add(std::int32_t id, std::string_view token) {
  places_.push_back({id, static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(token.size())});
  bytes_ += token;
}

void Vocabulary::finish() {
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.id != b.id ? a.id < b.id : a.begin < b.begin; });
  shares_ids_ = std::adjacent_find(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.id == b.id; }) != places_.end();
  trie_ = Trie(places_.size(), count_characters(bytes_));
  for (std::size_t number = 0; number < places_.size(); ++number) trie_.add(code_points(text(places_[number])), static_cast<std::int32_t>(number));
}

std::int32_t Vocabulary::find(std::u32string_view token, Trie::Node from) const {
  const auto node = trie_.find(token, from);
  return node ? trie_.number(*node) : -1;
}

std::int32_t Vocabulary::find_text(std::string_view token) const {
  const auto chars = decode_utf8(token);
  return chars ? find(code_points(*chars)) : -1;
}

std::int32_t Vocabulary::first_of(std::int32_t id) const {
  const auto place = std::lower_bound(places_.begin(), places_.end(), id, [](const Place& a, std::int32_t wanted) { return a.id < wanted; });
  return place == places_.end() || place->id != id ? -1 : static_cast<std::int32_t>(place - places_.begin());
}

std::int32_t Vocabulary::shared(std::int32_t number) const { return shares_ids_ && number >= 0 ? first_of(id(number)) : number; }

std::optional<std::int32_t> Vocabulary::id_of(std::string_view token) const {
  const std::int32_t number = find_text(token);
  return number < 0 ? std::nullopt : std::optional(id(number));
}

std::optional<std::string_view> Vocabulary::text_of(std::int32_t id) const {
  const std::int32_t number = first_of(id);
  return number < 0 ? std::nullopt : std::optional(text(number));
}

}  // namespace attn::detail
