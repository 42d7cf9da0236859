#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/old_token_files.hpp"
#include "attn/io/tokenizer/added_tokens.hpp"
#include "attn/io/tokenizer/decoders.hpp"
#include "attn/io/tokenizer/early_end.hpp"
#include "attn/io/tokenizer/model.hpp"
#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/post_processor.hpp"
#include "attn/io/tokenizer/pre_tokenizers.hpp"
#include "attn/io/tokenizer/source_text.hpp"

namespace attn::detail {

struct Padding {
  std::int32_t id = 0, type_id = 0;
  std::string token = {};
  Side side = Side::right;
};

/// What is in a tokenizer.json: text → added tokens and what is between them → normalised → words → the model's tokens → special tokens around →
/// padded.
struct TokenizerFile {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  PostProcessor post_processor;
  std::unique_ptr<const Model> model;
  AddedTokens added;
  Padding padding;
  Side truncation_side = Side::right;
  EarlyEnd early_end = {};
  Decoder decoder;                  ///< empty where there is none
  std::optional<Error> no_decoder;  ///< why it could not be read, which concerns only who decodes
  bool cleans_up_spaces = false;
  bool marks_words = false;  ///< tokens that go on with a word
  std::optional<std::int32_t> cls_id = std::nullopt, mask_id = std::nullopt, unk_id = std::nullopt;

  /// The tokens of a text, the caller's number `index`: all of them, or more than `most` from the side on that is not cut, where words before those
  /// do not count. White space is of their places.
  TextTokens tokenize(const SourceText& text, std::size_t index, std::size_t most, Side cut = Side::right) const;
  /// No longer.
  void trim_offsets(TextTokens& text) const;
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string_view> id_to_token(std::int32_t id) const;
  /// The text of a token that is of the vocabulary, or has its own.
  std::string_view text_of(const Token& token) const { return token.number >= 0 ? model->vocabulary().text(token.number) : token.content; }

  /// Appends the tokens of a text, or a word of it, that begins at a byte; whether there are more than `most`. `word` is the number of all, else they
  /// are counted. Where `is_open` the last word goes on behind the text.
  bool add_tokens(std::string_view part, std::size_t begin, std::size_t index, std::optional<std::int32_t> word, std::size_t most, TextTokens& made,
                  bool is_open = false) const;
};

/// Throws FORMAT for what no tokenizer.json is, UNSUPPORTED for kinds of parts that are not known, MEMORY.
TokenizerFile read_tokenizer_file(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                                  std::string_view default_class, const OldTokenFiles& old_files = {});

}  // namespace attn::detail
