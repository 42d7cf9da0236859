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
  bool single_word = false;  ///< only as a whole word
  bool lstrip = false;       ///< with the white space before it
  bool rstrip = false;       ///< with the white space after it
  bool normalized = false;   ///< searched, normalised, in the normalised text
  bool is_split = false;     ///< ordinary text
};

/// Finds special and other added tokens before the text is split into words.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// `section` may be missing; `splits_special` treats special tokens as text. Throws FORMAT, UNSUPPORTED, MEMORY.
  AddedTokens(const Value& section, const Vocabulary& vocabulary, Normalizer normalizer, bool splits_special = false);

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// The searched text, normalised if the token is.
  std::optional<std::string_view> text_of(std::int32_t id) const;
  /// Calls look(token, searched text) until it returns false.
  template <class Look>
  void for_each(Look look) const {
    for (const Wanted* wanted : {&plain_, &normalized_})
      for (const AddedToken& token : wanted->tokens)
        if (!look(token, std::string_view(named_.at(token.id).text))) return;
  }
  bool is_special(std::int32_t id) const;
  /// Includes the vocabulary.
  std::size_t size() const { return size_; }
  /// Returns added tokens and the normalised text between them.
  Pieces extract(const Chars& text, Budget& budget) const;

 private:
  /// Indexed by number in the trie.
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
