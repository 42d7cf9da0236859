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

/// `start` and `end` are bytes of the text.
struct Token {
  std::int32_t id;
  std::uint32_t start, end;
  std::int32_t number = -1;  ///< in the vocabulary; negative if the text is in `content`
  std::string content = {};
  std::int32_t word = -1;  ///< index of its piece of the text
};

class Model {
 public:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// `word` is not empty. If `is_open`, it continues, and only tokens independent of the rest are appended.
  virtual void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool is_open) const = 0;
  virtual bool takes_open_words() const { return false; }

 protected:
  Token token(std::int32_t number, std::span<const Char> word, std::size_t from, std::size_t to) const {
    return {.id = vocabulary_.id(number), .start = word[from].start, .end = word[to - 1].end, .number = number};
  }

 private:
  Vocabulary vocabulary_;
};

/// Throws only when needed, because many vocabularies never need the token.
class UnknownToken {
 public:
  UnknownToken() = default;
  UnknownToken(std::int32_t number, std::string name, const char* path) : number_(number), name_(std::move(name)), path_(path) {}
  std::int32_t needed() const;
  std::int32_t number() const { return number_; }

 private:
  std::int32_t number_ = -1;
  std::string name_ = "missing";
  const char* path_ = "";
};

Json take(Json& object, std::string_view name);
Vocabulary read_tokens(Json& model);
class ByteFallback {
 public:
  ByteFallback(const Value& section, const Vocabulary& vocabulary);
  /// Appends none if a byte has no token.
  bool append(std::u32string_view codes, std::vector<std::int32_t>& numbers) const;

 private:
  std::vector<std::int32_t> numbers_;
};

/// Moves the vocabulary out of the section.
std::unique_ptr<const Model> read_model(Json& json);

}  // namespace attn::detail
