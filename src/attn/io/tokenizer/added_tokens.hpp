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
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< looked for after the text was normalised, and normalised itself
  bool is_split = false;     ///< left to the model, like any other text
};

/// Tokens beside the model's, found in the text before it is cut into words: those of special meaning, e.g. [MASK], and any others.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// `section` may be missing. `splits_special`: special tokens in a text are split like any other text. Throws FORMAT, UNSUPPORTED, MEMORY.
  AddedTokens(const Value& section, const Vocabulary& vocabulary, Normalizer normalizer, bool splits_special = false);

  std::optional<std::int32_t> id_of(std::string_view token) const;
  /// Normalised where that is what is looked for.
  std::optional<std::string_view> text_of(std::int32_t id) const;
  /// look(token, its text as it is looked for) for each, until it gives false.
  template <class Look>
  void for_each(Look look) const {
    for (const Wanted* wanted : {&plain_, &normalized_})
      for (const AddedToken& token : wanted->tokens)
        if (!look(token, std::string_view(named_.at(token.id).text))) return;
  }
  /// Whether that is a token of special meaning.
  bool is_special(std::int32_t id) const;
  /// Of the vocabulary with these.
  std::size_t size() const { return size_; }
  /// A text as pieces: added tokens, and normalised text between them.
  Pieces extract(const Chars& text, Budget& budget) const;

 private:
  /// What is looked for, by the numbers that the trie has for it.
  struct Wanted {
    std::vector<AddedToken> tokens = {};
    Trie trie = {};
  };

  /// The text of a token as it is looked for, and its place among all.
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
