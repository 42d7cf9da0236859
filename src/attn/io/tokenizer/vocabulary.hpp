#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/trie.hpp"

namespace attn::detail {

/// In one block of memory, numbered by ascending id.
class Vocabulary {
 public:
  void reserve(std::size_t tokens, std::size_t bytes);
  void add(std::int32_t id, std::string_view token);
  /// The last of equal tokens and the first of equal ids apply.
  void finish();

  std::size_t size() const { return places_.size(); }
  /// `token` follows the characters of `from`.
  std::int32_t find(std::u32string_view token, Trie::Node from = Trie::root()) const;
  std::int32_t find_text(std::string_view token) const;
  std::int32_t id(std::int32_t number) const { return places_[static_cast<std::size_t>(number)].id; }
  std::string_view text(std::int32_t number) const { return text(places_[static_cast<std::size_t>(number)]); }
  /// One number for all tokens with the same id.
  std::int32_t shared(std::int32_t number) const;
  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::string_view> text_of(std::int32_t id) const;

  const Trie& trie() const { return trie_; }

 private:
  struct Place {
    std::int32_t id;
    std::uint32_t begin, size;
  };
  std::string_view text(const Place& place) const { return std::string_view(bytes_).substr(place.begin, place.size); }
  std::int32_t first_of(std::int32_t id) const;

  std::vector<Place> places_;
  std::string bytes_;
  Trie trie_;
  bool shares_ids_ = false;
};

}  // namespace attn::detail
