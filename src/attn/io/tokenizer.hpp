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

/// Token ids of the caller's text or pair number `index`, without padding.
struct TextRow {
  std::size_t index = 0;
  std::vector<std::int32_t> ids = {}, types = {};
  bool truncated = false;
};
}  // namespace detail

/// Options for Tokenizer::encode().
struct TokenizeOptions {
  /// Maximum number of tokens per text, including special tokens; default unlimited.
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;          ///< whether longer texts are truncated or throw OUT_OF_RANGE
  bool add_special_tokens = true;  ///< whether tokens such as [CLS] are added around a text
  /// Ends at which texts are truncated and padded; default from tokenizer_config.json, otherwise right, the end of the text.
  std::optional<Side> truncation_side = std::nullopt, padding_side = std::nullopt;
};

/// Byte range [start, end) of each token in its text (for a pair: the text that contains the token); none for padding
/// and added special tokens.
using TokenOffsets = std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>>;

/// Text of a pair that each token is from, 0 or 1; none if TokenOffsets has none.
using TokenSequences = std::vector<std::optional<std::int32_t>>;

/// Index of the word that each token is from; none if TokenOffsets has none.
using TokenWords = std::vector<std::optional<std::int32_t>>;

/// A text that is already split into words.
using Words = std::vector<std::string>;

/// Token ids of texts, padded to the longest; ids and masks are (B,L), row-major.
struct EncodedTexts {
  Shape shape;
  std::vector<std::int32_t> input_ids, token_type_ids;
  std::vector<std::uint8_t> attention_mask;  ///< 1 for tokens, 0 for padding
  std::vector<bool> truncated;               ///< whether each text was truncated
  std::vector<std::vector<std::string>> tokens;
  std::vector<TokenOffsets> offsets;
  std::vector<TokenSequences> sequence_ids;
  std::vector<TokenWords> words = {};  ///< only for texts given as words, otherwise empty
};

/// EncodedTexts with tensors of rank N = 2.
/// @code
/// const auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
/// const attn::Encoding inputs(tokenizer.encode_texts(std::vector<std::string>{"A warm film."}));
/// std::cout << inputs.input_ids.shape(1);  // 6
/// @endcode
template <std::size_t N>
struct EncodingTensors {
  using Offsets = TokenOffsets;

  TensorOf<N, std::int32_t> input_ids, token_type_ids;  ///< (B,L)
  TensorOf<N, std::uint8_t> attention_mask;             ///< (B,L), 1 for tokens, 0 for padding
  std::vector<bool> truncated;                          ///< whether each text was truncated
  std::vector<std::vector<std::string>> tokens;
  std::vector<Offsets> offsets;
  std::vector<TokenSequences> sequence_ids;
  std::vector<TokenWords> words;  ///< only for texts given as words, otherwise empty

  EncodingTensors() = default;
  /// Copies the ids and masks into tensors.
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

/// Interface for your own tokenizer, for models with a tokenizer.json that Tokenizer does not support. It must be
/// thread-safe. Its exceptions are passed on by the model's functions.
/// @code
/// struct Letters : attn::TextTokenizer {  // id 0: padding, 1: a, 2: b
///   attn::EncodedTexts encode_texts(const std::vector<std::string>& texts, const attn::TokenizeOptions&) const override {
///     const auto size = static_cast<std::int64_t>(texts.at(0).size());
///     attn::EncodedTexts encoded{.shape = {1, size}};
///     for (const char c : texts[0]) encoded.input_ids.push_back(c - 'a' + 1);
///     return encoded;
///   }
///   attn::EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>&,
///                                   const attn::TokenizeOptions&) const override {
///     throw std::invalid_argument("this tokenizer takes no pairs");
///   }
///   std::optional<std::int64_t> token_to_id(const std::string& token) const override { return token.at(0) - 'a' + 1; }
///   std::optional<std::string> id_to_token(std::int64_t id) const override { return std::string(1, static_cast<char>('a' + id - 1)); }
///   std::int64_t pad_id() const override { return 0; }
/// };
/// std::cout << *Letters().token_to_id("b");  // 2
/// @endcode
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;
  /// Tokenizes texts or pairs, padded to the longest, as Tokenizer::encode_texts(). TextTokenizer has an example of all members.
  virtual EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options) const = 0;
  virtual EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options) const = 0;
  /// Returns the id of a token, or none if the vocabulary does not have it.
  virtual std::optional<std::int64_t> token_to_id(const std::string& token) const = 0;
  /// Returns the token of an id, or none if the vocabulary does not have it.
  virtual std::optional<std::string> id_to_token(std::int64_t id) const = 0;
  /// Returns the id of the padding token.
  virtual std::int64_t pad_id() const = 0;
};

/// Tokenizes text with the same ids, tokens and offsets as the Hugging Face tokenizers library. Reads tokenizer.json
/// with the models WordPiece, BPE, Unigram and WordLevel, and the normalizers, pre-tokenizers and post-processors of
/// published files. Copies share the tables.
class Tokenizer {
 public:
  /// Reads the files of a tokenizer. tokenizer_config.json specifies the padding token and, as in transformers'
  /// AutoTokenizer, overrides normalisation. Tokens that only this file or old_files contain (added_tokens_decoder, extra_special_tokens, keys that
  /// end in _token) are added as in transformers. With split_special_tokens, special tokens in a text are treated as ordinary text.
  ///
  /// @param tokenizer_json    bytes of tokenizer.json
  /// @param tokenizer_config  bytes of tokenizer_config.json, or none
  /// @param default_class     class if the config names none; "BertTokenizer" and its like lowercase unless
  /// do_lower_case is false
  /// @param old_files         special_tokens_map.json and added_tokens.json
  /// @throws FORMAT if a file is damaged
  /// @throws UNSUPPORTED if a part or regular expression is unknown (the message names it) or would be too expensive
  /// @throws MEMORY if the tables exceed the memory limit
  ///
  /// @code
  /// std::ifstream file("testdata/models/sentiment/tokenizer.json", std::ios::binary);
  /// const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  /// std::cout << attn::Tokenizer::parse(bytes).vocabulary_size();  // 13500
  /// @endcode
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
  /// @throws UNSUPPORTED if the rules of the file make the text too expensive
  /// @throws FORMAT if the text contains unknown characters and the file has no unknown token
  /// @throws MEMORY if the result exceeds the memory limit
  ///
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// auto encoding = tokenizer.encode({"A warm film."}, {.max_length = 4});
  /// std::cout << encoding.input_ids << ' ' << encoding.truncated.at(0);  // {{ 2, 43, 1968, 3}} 1
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> encode(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_texts(texts, options));
  }
  /// Tokenizes pairs of texts, each pair as one sequence; the longer text is truncated first. Errors as encode().
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// std::cout << tokenizer.encode_pairs({{"A warm film.", "funny"}}).token_type_ids;  // {{0, 0, 0, 0, 0, 0, 1, 1}}
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_texts(pairs, options));
  }
  /// Tokenizes texts or pairs and returns plain vectors instead of tensors.
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// const attn::EncodedTexts encoded = tokenizer.encode_texts(std::vector<std::string>{"A warm film."});
  /// std::cout << to_string(encoded.shape) << ' ' << encoded.input_ids.at(2);  // (1,6) 1968
  /// @endcode
  EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const;
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const;

  /// Tokenizes texts that are already split into words, like is_split_into_words in transformers: each word is tokenized separately, offsets are
  /// bytes of the word, and `words` contains its index. Errors as encode().
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// const std::vector<attn::Words> texts{{"A", "heartwarming", "film."}};
  /// const auto encoding = tokenizer.encode_words(texts);
  /// for (const std::string& token : encoding.tokens.at(0)) std::cout << token << ' ';  // [CLS] a heart ##war ##ming film . [SEP]
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> encode_words(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_word_texts(texts, options));
  }
  /// Tokenizes pairs of texts that are already split into words, each pair as one sequence. Errors as encode().
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// const attn::Words text{"A", "warm", "film"}, other{"It", "is", "funny"};
  /// std::cout << tokenizer.encode_word_pairs({{text, other}}).token_type_ids;  // {{0, 0, 0, 0, 0, 1, 1, 1, 1}}
  /// @endcode
  template <std::size_t N = 2>
  EncodingTensors<N> encode_word_pairs(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const {
    return EncodingTensors<N>(encode_word_texts(pairs, options));
  }
  /// Tokenizes texts or pairs that are already split into words and returns plain vectors instead of tensors. Errors as encode().
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// const std::vector<attn::Words> texts{{"A", "warm", "film."}};
  /// std::cout << to_string(tokenizer.encode_word_texts(texts).shape);  // (1,6)
  /// @endcode
  EncodedTexts encode_word_texts(const std::vector<Words>& texts, const TokenizeOptions& options = {}) const;
  EncodedTexts encode_word_texts(const std::vector<std::pair<Words, Words>>& pairs, const TokenizeOptions& options = {}) const;

  /// Returns the text of tokens, as transformers' decode(). Uses the decoder of the file (WordPiece, ByteLevel, Metaspace, BPEDecoder, ByteFallback,
  /// Fuse, Strip, Replace, Sequence); if there is none, tokens are joined by spaces. Removes spaces before punctuation if tokenizer_config.json has
  /// clean_up_tokenization_spaces. Skips unknown ids.
  ///
  /// @param ids                  token ids
  /// @param skip_special_tokens  whether to leave out special tokens
  /// @throws UNSUPPORTED for other decoders, and if the decoder makes the text too long
  /// @throws MEMORY if the text exceeds the memory limit
  ///
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// const attn::EncodedTexts encoded = tokenizer.encode_texts(std::vector<std::string>{"A warm film."});
  /// std::cout << tokenizer.decode(encoded.input_ids, true);  // a warm film.
  /// @endcode
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// Returns the id of a token, or none if the vocabulary does not have it.
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// std::cout << *tokenizer.token_to_id("film");  // 222
  /// @endcode
  std::optional<std::int64_t> token_to_id(const std::string& token) const;
  /// Returns the token of an id, or none if the vocabulary does not have it.
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// std::cout << *tokenizer.id_to_token(222);  // film
  /// @endcode
  std::optional<std::string> id_to_token(std::int64_t id) const;
  /// Returns the number of tokens, including those that other files add to the vocabulary of tokenizer.json.
  /// @code
  /// std::cout << attn::load_tokenizer("testdata/models/sentiment").vocabulary_size();  // 13500
  /// @endcode
  std::int64_t vocabulary_size() const;
  /// Returns the id of the padding token.
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// std::cout << *tokenizer.id_to_token(tokenizer.pad_id());  // [PAD]
  /// @endcode
  std::int64_t pad_id() const;
  /// Returns whether the tokenizer lowercases texts.
  /// @code
  /// auto tokenizer = attn::load_tokenizer("testdata/models/sentiment");
  /// std::cout << tokenizer.lower_cases();  // 1
  /// @endcode
  bool lower_cases() const;

 private:
  friend class TextModel;
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerFile> file);

  /// Tokenizes texts [begin, end), for callers with too many texts for one Encoding.
  EncodedTexts encode_texts(const std::vector<std::string>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const;
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, std::size_t begin, std::size_t end,
                            const TokenizeOptions& options) const;
  /// Tokenizes text number `index` without making its tokens and offsets.
  detail::TextRow encode_row(const std::string& text, std::size_t index, const TokenizeOptions& options) const;
  detail::TextRow encode_row(const std::pair<std::string, std::string>& pair, std::size_t index, const TokenizeOptions& options) const;

  std::shared_ptr<const detail::TokenizerFile> file_;
};

}  // namespace attn
