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

/// A Hugging Face tokenizer.json (models WordPiece, BPE, Unigram and WordLevel, with the normalizers, pre-tokenizers and post-processors of published
/// files): the same ids, tokens and offsets as their library gives. Copies share what was read.
class Tokenizer {
 public:
  /// tokenizer_config.json says which token pads, and as in transformers' AutoTokenizer sets anew how texts are normalised; where its
  /// tokenizer_class is left out, default_class counts: "BertTokenizer" and its like make small letters unless do_lower_case is false. Tokens that
  /// only it and old_files have (added_tokens_decoder, extra_special_tokens, anything called *_token) are added as by transformers; with
  /// split_special_tokens special tokens in a text are ordinary text.
  /// Throws FORMAT, MEMORY; UNSUPPORTED by name for a part, or a regular expression, that it does not know, and for what would cost out of
  /// proportion.
  static Tokenizer parse(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config = std::nullopt,
                         std::string_view default_class = {}, const OldTokenFiles& old_files = {});

  /// Without max_length nothing is cut. Throws ARGUMENT where a text is not UTF-8, OUT_OF_RANGE also where the special tokens alone are
  /// more than max_length, UNSUPPORTED where the file makes the text too expensive, FORMAT where the text has something unknown and the file has
  /// no token for that, MEMORY.
  template <std::size_t N = 2>
  EncodingTensors<N> encode(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_texts(texts, options));
  }
  /// Two texts in one sequence; the longer one is cut first.
  template <std::size_t N = 2>
  EncodingTensors<N> encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_texts(pairs, options));
  }
  /// The same without tensors.
  EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const;
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const;

  /// Of what is words already, as Hugging Face's is_split_into_words: each word is tokenized as a text by itself, offsets are bytes of it, and
  /// `words` says which it is.
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

  /// The text that tokens stand for, as the file's decoder puts them together (WordPiece, ByteLevel, Metaspace, BPEDecoder, ByteFallback, Fuse,
  /// Strip, Replace, Sequence; without one with spaces between them), and spaces before punctuation taken out where tokenizer_config.json says
  /// clean_up_tokenization_spaces: as transformers' decode(). Ids that no token has are left out. Throws UNSUPPORTED for other decoders, UNSUPPORTED
  /// and MEMORY where the file makes the text too long.
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
