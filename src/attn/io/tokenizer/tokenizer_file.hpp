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

/// text → added tokens and text between them → normalised text → words → tokens → special tokens around them → padding.
struct TokenizerFile {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  PostProcessor post_processor;
  std::unique_ptr<const Model> model;
  AddedTokens added;
  Padding padding;
  Side truncation_side = Side::right;
  EarlyEnd early_end = {};
  Decoder decoder;
  std::optional<Error> no_decoder;  ///< thrown by decode()
  bool cleans_up_spaces = false;
  bool marks_words = false;  ///< tokens that continue a word have a prefix
  std::optional<std::int32_t> cls_id = std::nullopt, mask_id = std::nullopt, unk_id = std::nullopt;

  /// Returns all tokens, or more than `most` from the side that is kept; words before these are not counted. Offsets
  /// include white space until trim_offsets().
  TextTokens tokenize(const SourceText& text, std::size_t index, std::size_t most, Side cut = Side::right) const;
  void trim_offsets(TextTokens& text) const;
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string_view> id_to_token(std::int32_t id) const;
  std::string_view text_of(const Token& token) const { return token.number >= 0 ? model->vocabulary().text(token.number) : token.content; }

  /// Appends the tokens of a part at byte `begin`; returns whether there are more than `most`. Counts words if there is
  /// no `word`. `is_open`: the last word continues.
  bool add_tokens(std::string_view part, std::size_t begin, std::size_t index, std::optional<std::int32_t> word, std::size_t most, TextTokens& made,
                  bool is_open = false) const;
};

TokenizerFile read_tokenizer_file(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                                  std::string_view default_class, const OldTokenFiles& old_files = {});

}  // namespace attn::detail
