#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/word_piece.hpp"

namespace attn::detail {

/// A token that is looked for in the text as it stands, before it is split into words.
struct AddedToken {
  std::string content = {};
  std::int32_t id = 0;
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< looked for after the text was normalised, and normalised itself
};

/// A place of a template: a special token, or one of the texts.
struct TemplatePiece {
  enum class Kind : std::uint8_t { special, first, second };
  Kind kind = Kind::special;
  std::int32_t type_id = 0;
  std::vector<std::int32_t> ids = {};
  std::vector<std::string> tokens = {};
};
using Template = std::vector<TemplatePiece>;

struct BertNormalizer {
  bool clean_text = false, handle_chinese_chars = false, strip_accents = false, lowercase = false;

  Chars normalized(Chars text) const;
};

/// The tokens of a vocabulary by their ids, in one block of memory.
class TokenTexts {
 public:
  void reserve(std::size_t tokens, std::size_t bytes);
  void add(std::int32_t id, std::string_view token);
  /// Once all are there.
  void sort();
  /// Of those with the same id the first that was added.
  std::optional<std::string_view> find(std::int32_t id) const;
  std::size_t size() const { return places_.size(); }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Place& place : places_) visit(place.id, text(place));
  }
  /// Of one that is there.
  std::string_view operator[](std::int32_t id) const { return *find(id); }

 private:
  struct Place {
    std::int32_t id;
    std::uint32_t begin, size;
  };
  std::string_view text(const Place& place) const { return std::string_view(bytes_).substr(place.begin, place.size); }

  std::vector<Place> places_;
  std::string bytes_;
};

/// What is in a tokenizer.json.
struct TokenizerFile {
  BertNormalizer normalizer;
  WordPiece model;
  std::vector<AddedToken> added = {};
  Trie added_raw = {}, added_normalized = {};  ///< their ids are places in `added`
  std::map<std::string, std::int32_t> added_ids = {};
  std::map<std::int32_t, std::string> added_tokens = {};  ///< by id, and normalised where the text is
  TokenTexts tokens = {};                                 ///< of the vocabulary
  std::int64_t size = 0;                                  ///< of the vocabulary with what was added
  Template single = {}, pair = {};
  bool trim_offsets = false, add_prefix_space = false;  ///< of a RobertaProcessing
  std::int32_t pad_id = 0, pad_type_id = 0;
  std::string pad_token = {};
};

/// Throws FORMAT for what no tokenizer.json is, UNSUPPORTED for kinds of parts that are not WordPiece's.
TokenizerFile read_tokenizer_file(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                                  std::string_view default_class);

}  // namespace attn::detail
