#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/tokenizer/schema.hpp"
#include "attn/io/tokenizer/unicode.hpp"
#include "attn/io/tokenizer/vocabulary.hpp"

namespace attn::detail {

/// A token, and its byte range in the text.
struct Token {
  std::int32_t id;
  std::uint32_t start, end;
  std::int32_t number = -1;  ///< number in the vocabulary; negative if the text is in `content`
  std::string content = {};
  std::int32_t word = -1;  ///< index of its piece of the text
};

/// Splits words into tokens.
class Model {
 public:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Appends the tokens of a non-empty word. If `is_open`, the word continues, and only tokens that do not depend on
  /// the continuation are appended.
  virtual void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool is_open) const = 0;
  /// Whether tokenize() supports `is_open`.
  virtual bool takes_open_words() const { return false; }

 protected:
  Token token(std::int32_t number, std::span<const Char> word, std::size_t from, std::size_t to) const {
    return {.id = vocabulary_.id(number), .start = word[from].start, .end = word[to - 1].end, .number = number};
  }

 private:
  Vocabulary vocabulary_;
};

/// The token for unknown characters. If it is missing, the error is thrown only when it is needed, because many
/// vocabularies never need it.
class UnknownToken {
 public:
  UnknownToken() = default;
  UnknownToken(std::int32_t number, std::string name, const char* path) : number_(number), name_(std::move(name)), path_(path) {}
  /// Returns its number; throws FORMAT if there is none.
  std::int32_t needed() const;
  std::int32_t number() const { return number_; }

 private:
  std::int32_t number_ = -1;
  std::string name_ = "missing";
  const char* path_ = "";
};

/// Moves a member out of an object, so that a large member can be freed early.
Json take(Json& object, std::string_view name);
/// Reads the vocabulary of a section, an object of ids by token.
Vocabulary read_tokens(Json& model);
/// Tokens for single bytes, if the section has "byte_fallback".
class ByteFallback {
 public:
  ByteFallback(const Value& section, const Vocabulary& vocabulary);
  /// Appends a token for each byte of the characters; returns false and appends none if one is missing.
  bool append(std::u32string_view codes, std::vector<std::int32_t>& numbers) const;

 private:
  std::vector<std::int32_t> numbers_;
};

/// Reads the section "model" and moves the vocabulary out of it. Throws FORMAT, MEMORY, and UNSUPPORTED for unknown
/// kinds.
std::unique_ptr<const Model> read_model(Json& json);

}  // namespace attn::detail
