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

/// A token of a text, and the bytes of it that it stands for.
struct Token {
  std::int32_t id;
  std::uint32_t start, end;
  std::int32_t number = -1;  ///< of the vocabulary, which has its text; below 0 where `content` is that
  std::string content = {};
  std::int32_t word = -1;  ///< the piece of the text that it is of
};

/// What makes tokens of words.
class Model {
 public:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Appends the tokens of a word of one character or more; of one that goes on where `is_open` those that are the same whatever follows.
  virtual void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool is_open) const = 0;
  /// Whether it can do that.
  virtual bool takes_open_words() const { return false; }

 protected:
  /// Of word[from, to).
  Token token(std::int32_t number, std::span<const Char> word, std::size_t from, std::size_t to) const {
    return {.id = vocabulary_.id(number), .start = word[from].start, .end = word[to - 1].end, .number = number};
  }

 private:
  Vocabulary vocabulary_;
};

/// What stands for the unknown. That it is missing shows when it is needed: many vocabularies never need it.
class UnknownToken {
 public:
  UnknownToken() = default;
  UnknownToken(std::int32_t number, std::string name, const char* path) : number_(number), name_(std::move(name)), path_(path) {}
  /// Its number; throws FORMAT where there is none.
  std::int32_t needed() const;
  std::int32_t number() const { return number_; }

 private:
  std::int32_t number_ = -1;
  std::string name_ = "missing";
  const char* path_ = "";
};

/// The member of an object, which no longer has it: what is made of a large part need not be beside it in memory.
Json take(Json& object, std::string_view name);
/// The tokens of an object, and the id of each.
Vocabulary read_tokens(Json& model);
/// The number of the token for each byte, where all of `bytes` are in the vocabulary; of a file with "byte_fallback".
class ByteFallback {
 public:
  ByteFallback(const Value& section, const Vocabulary& vocabulary);
  /// Whether there is one for every byte of the characters; appends their numbers.
  bool append(std::u32string_view codes, std::vector<std::int32_t>& numbers) const;

 private:
  std::vector<std::int32_t> numbers_;
};

/// Takes the vocabulary out of `json`, which is the section "model". Throws FORMAT, UNSUPPORTED for other kinds, MEMORY.
std::unique_ptr<const Model> read_model(Json& json);

}  // namespace attn::detail
