#include "attn/io/tokenizer/word_level.hpp"

#include <utility>

namespace attn::detail {
namespace {

class WordLevel final : public Model {
 public:
  WordLevel(Vocabulary vocabulary, UnknownToken unknown) : Model(std::move(vocabulary)), unknown_(std::move(unknown)) {}

  void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool) const override {
    budget.spend(word.size());
    const std::int32_t number = vocabulary().find(code_points(word));
    tokens.push_back(token(number >= 0 ? number : unknown_.needed(), word, 0, word.size()));
  }

 private:
  UnknownToken unknown_;
};

}  // namespace

std::unique_ptr<const Model> read_word_level(const Value& section, Json& json) {
  const std::string unknown = section["unk_token"].string();
  Vocabulary vocabulary = read_tokens(json);
  UnknownToken stands(vocabulary.find_text(unknown), "\"" + unknown + "\"", "tokenizer.json.model.unk_token");
  return std::make_unique<WordLevel>(std::move(vocabulary), std::move(stands));
}

}  // namespace attn::detail
