#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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

/// What is in a tokenizer.json.
struct TokenizerFile {
  BertNormalizer normalizer;
  WordPiece model;
  std::vector<AddedToken> added = {};
  Trie added_raw = {}, added_normalized = {};  ///< their ids are places in `added`
  std::unordered_map<std::string, std::int32_t> added_ids = {};
  std::unordered_map<std::int32_t, std::string> added_tokens = {};  ///< by id, and normalised where the text is
  std::unordered_map<std::int32_t, std::string> tokens = {};        ///< of the vocabulary, by id
  std::int64_t size = 0;                                            ///< of the vocabulary with what was added
  Template single = {}, pair = {};
  bool trim_offsets = false, add_prefix_space = false;  ///< of a RobertaProcessing
  std::int32_t pad_id = 0, pad_type_id = 0;
  std::string pad_token = {};
};

/// Throws FORMAT for what no tokenizer.json is, UNSUPPORTED for kinds of parts that are not WordPiece's.
TokenizerFile read_tokenizer_file(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                                  std::string_view default_class);

}  // namespace attn::detail
