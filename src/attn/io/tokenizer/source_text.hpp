#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "attn/io/tokenizer/model.hpp"

namespace attn::detail {

/// A text, or separately tokenized words. The strings must outlive it.
class SourceText {
 public:
  SourceText() = default;
  explicit SourceText(std::string_view text) : text_(text) {}
  explicit SourceText(std::span<const std::string> words) : words_(words), are_words_(true) {}

  bool are_words() const { return are_words_; }
  std::size_t size() const { return are_words_ ? words_.size() : 1; }
  std::string_view operator[](std::size_t i) const { return are_words_ ? words_[i] : text_; }
  std::string_view of(const Token& token) const { return are_words_ ? words_[static_cast<std::size_t>(token.word)] : text_; }
  std::size_t characters() const {
    std::size_t all = 0;
    for (std::size_t i = 0; i < size(); ++i) all += count_characters((*this)[i]);
    return all;
  }

 private:
  std::string_view text_;
  std::span<const std::string> words_;
  bool are_words_ = false;
};

struct TextTokens {
  SourceText text = {};
  std::vector<Token> tokens = {};
  Budget budget{0};
};

}  // namespace attn::detail
