#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/pieces.hpp"
#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/trie.hpp"
#include "attn/io/tokenizer/vocabulary.hpp"

namespace attn::detail {

struct AddedToken {
  std::int32_t id = 0;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;  ///< normalised and searched in normalised text
  bool is_split = false;    ///< ordinary text
};

class AddedTokens {
 public:
  AddedTokens() = default;
  /// `section` may be missing; `splits_special` treats special tokens as text.
  AddedTokens(const Value& section, const Vocabulary& vocabulary, Normalizer normalizer, bool splits_special = false);

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// Normalised if the token is.
  std::optional<std::string_view> text_of(std::int32_t id) const;
  template <class Look>
  void for_each(Look look) const {
    for (const Wanted* wanted : {&plain_, &normalized_})
      for (const AddedToken& token : wanted->tokens)
        if (!look(token, std::string_view(named_.at(token.id).text))) return;
  }
  bool is_special(std::int32_t id) const;
  std::size_t size() const { return size_; }
  /// Returns added tokens and the normalised text between them.
  Pieces extract(const Chars& text, Budget& budget) const;

 private:
  struct Wanted {
    std::vector<AddedToken> tokens = {};
    Trie trie = {};
  };

  /// `place`: index among all tokens.
  struct Named {
    std::string text;
    std::size_t place;
    bool is_special;
  };

  Wanted wanted(const std::vector<AddedToken>& all, bool normalized) const;
  template <class Emit>
  static void find(std::span<const Char> text, const Wanted& wanted, Budget& budget, const Emit& emit);

  Normalizer normalizer_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
  std::map<std::int32_t, Named> named_;
  Wanted plain_, normalized_;
  std::size_t size_ = 0;
};

}  // namespace attn::detail
