#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/io/old_token_files.hpp"
#include "attn/io/side.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

namespace detail {
struct TokenizerFile;
}

/// max_length, special tokens included: the most that a text is cut to. A longer one is OUT_OF_RANGE with `truncation` false.
struct TokenizeOptions {
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;
  bool add_special_tokens = true;  ///< put [CLS] and the like around a text
  /// Where what is too long is cut, and where shorter ones are filled up; default as tokenizer_config.json says, else right: their end.
  std::optional<Side> truncation_side = std::nullopt, padding_side = std::nullopt;
};

/// Bytes [start, end) of the text (of a pair: of the one that the token is from); none for padding and for special tokens that were added.
using TokenOffsets = std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>>;

/// Which text of a pair a token is from, 0 or 1; none where TokenOffsets has none.
using TokenSequences = std::vector<std::optional<std::int32_t>>;

/// Which word of its list a token is of, counted from 0; none where TokenOffsets has none.
using TokenWords = std::vector<std::optional<std::int32_t>>;

/// A text that is cut into words already.
using Words = std::vector<std::string>;

/// Token ids of texts, padded to the longest; numbers are (B,L), row-major.
struct EncodedTexts {
  Shape shape;
  std::vector<std::int32_t> input_ids, token_type_ids;
  std::vector<std::uint8_t> attention_mask;  ///< 1 where there is a token
  std::vector<bool> truncated;               ///< which texts were cut
  std::vector<std::vector<std::string>> tokens;
  std::vector<TokenOffsets> offsets;
  std::vector<TokenSequences> sequence_ids;
  std::vector<TokenWords> words = {};  ///< of texts that were words; else empty
};

/// The same as tensors, of rank N = 2.
template <std::size_t N>
struct EncodingTensors {
  using Offsets = TokenOffsets;

  TensorOf<N, std::int32_t> input_ids, token_type_ids;  ///< (B,L)
  TensorOf<N, std::uint8_t> attention_mask;             ///< (B,L), 1 where there is a token
  std::vector<bool> truncated;                          ///< which texts were cut
  std::vector<std::vector<std::string>> tokens;
  std::vector<Offsets> offsets;
  std::vector<TokenSequences> sequence_ids;
  std::vector<TokenWords> words;  ///< of texts that were words; else empty

  EncodingTensors() = default;
  explicit EncodingTensors(EncodedTexts texts)
      : input_ids(detail::empty<N, std::int32_t>(texts.shape)),
        token_type_ids(detail::empty<N, std::int32_t>(texts.shape)),
        attention_mask(detail::empty<N, std::uint8_t>(texts.shape)),
        truncated(std::move(texts.truncated)),
        tokens(std::move(texts.tokens)),
        offsets(std::move(texts.offsets)),
        sequence_ids(std::move(texts.sequence_ids)),
        words(std::move(texts.words)) {
    std::copy(texts.input_ids.begin(), texts.input_ids.end(), input_ids.data());
    std::copy(texts.token_type_ids.begin(), texts.token_type_ids.end(), token_type_ids.data());
    std::copy(texts.attention_mask.begin(), texts.attention_mask.end(), attention_mask.data());
  }
};
using Encoding = EncodingTensors<2>;

/// A tokenizer that is the caller's, for models whose own has parts that Tokenizer does not read. Several threads may use it at once. What it
/// throws comes out of the model's call.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;
  /// As Tokenizer's.
  virtual EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options) const = 0;
  virtual EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options) const = 0;
  virtual std::optional<std::int64_t> token_to_id(const std::string& token) const = 0;
  virtual std::optional<std::string> id_to_token(std::int64_t id) const = 0;
  virtual std::int64_t pad_id() const = 0;
};

/// Reads a Hugging Face tokenizer.json (models WordPiece, BPE, Unigram and WordLevel, with the normalizers,
/// pre-tokenizers and post-processors of published files) and gives the ids, tokens and offsets of the tokenizers
/// library. Copies share what was read.
class Tokenizer {
 public:
  /// Reads the files of a tokenizer. tokenizer_config.json specifies the padding token and, as in transformers'
  /// AutoTokenizer, overrides normalisation. Tokens that only it and old_files have (added_tokens_decoder,
  /// extra_special_tokens, keys that end in _token) are added as by transformers. With split_special_tokens, special
  /// tokens in a text are ordinary text.
  ///
  /// @param tokenizer_json    bytes of tokenizer.json
  /// @param tokenizer_config  bytes of tokenizer_config.json, or none
  /// @param default_class     class if the config names none; "BertTokenizer" and its like lowercase unless
  /// do_lower_case is false
  /// @param old_files         special_tokens_map.json and added_tokens.json
  /// @throws FORMAT if a file is damaged
  /// @throws UNSUPPORTED by name for an unknown part or regular expression, and for one that would be too expensive
  /// @throws MEMORY if the tables exceed the memory limit
  static Tokenizer parse(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config = std::nullopt,
                         std::string_view default_class = {}, const OldTokenFiles& old_files = {});

  /// Tokenizes texts, padded to the longest. Without max_length nothing is truncated.
  ///
  /// @param texts    UTF-8
  /// @param options  maximum length, truncation, special tokens, sides
  /// @return input_ids, token_type_ids, attention_mask (B,L); tokens, offsets and more per text
  /// @throws ARGUMENT if a text is not UTF-8
  /// @throws OUT_OF_RANGE if a text is too long and truncation is false, or max_length has no room for the special
  /// tokens
  /// @throws UNSUPPORTED if the file makes the text too expensive
  /// @throws FORMAT if the text has something unknown and the file has no unknown token
  /// @throws MEMORY if the result exceeds the memory limit
  template <std::size_t N = 2>
  EncodingTensors<N> encode(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_texts(texts, options));
  }
  /// Tokenizes pairs of texts, each pair as one sequence; the longer text is truncated first. Errors as encode().
  template <std::size_t N = 2>
  EncodingTensors<N> encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_texts(pairs, options));
  }
  /// Tokenizes texts or pairs and returns plain vectors instead of tensors.
  EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const;
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const;

  /// Tokenizes texts that are split into words, as Hugging Face's is_split_into_words: each word is tokenized alone,
  /// offsets are bytes of the word, and `words` gives its index. Errors as encode().
  template <std::size_t N = 2>
  EncodingTensors<N> encode_words(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_word_texts(texts, options));
  }
  template <std::size_t N = 2>
  EncodingTensors<N> encode_word_pairs(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_word_texts(pairs, options));
  }
  EncodedTexts encode_word_texts(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const;
  EncodedTexts encode_word_texts(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const;

  /// Returns the text of tokens, as transformers' decode(): through the file's decoder (WordPiece, ByteLevel,
  /// Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace, Sequence; without one joined by spaces), without
  /// spaces before punctuation if tokenizer_config.json has clean_up_tokenization_spaces. Unknown ids are skipped.
  ///
  /// @param ids                  token ids
  /// @param skip_special_tokens  whether to leave out special tokens
  /// @throws UNSUPPORTED for other decoders, and if the file makes the text too long
  /// @throws MEMORY if the text exceeds the memory limit
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  std::optional<std::int64_t> token_to_id(const std::string& token) const;
  std::optional<std::string> id_to_token(std::int64_t id) const;
  std::int64_t vocabulary_size() const;
  /// The id of the token that pads.
  std::int64_t pad_id() const;
  /// Whether capitals make no difference.
  bool lower_cases() const;

 private:
  friend class TextModel;
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerFile> file);

  /// Of the texts [begin, end), for who has too many for one Encoding.
  EncodedTexts encode_texts(const std::vector<std::string>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const;
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                            const TokenizeOptions& options) const;

  std::shared_ptr<const detail::TokenizerFile> file_;
};

}  // namespace attn
