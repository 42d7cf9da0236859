#include "attn/io/tokenizer/word_piece.hpp"

#include <optional>
#include <utility>

namespace attn::detail {
namespace {

/// Greedy longest match. A word with an unknown part is unknown as a whole.
class WordPiece final : public Model {
 public:
  WordPiece(Vocabulary vocabulary, UnknownToken unknown, std::u32string_view continuing_prefix, std::size_t max_chars)
      : Model(std::move(vocabulary)),
        unknown_(std::move(unknown)),
        inside_(this->vocabulary().trie().find(continuing_prefix)),
        max_chars_(max_chars) {}

  void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool) const override {
    const std::size_t before = tokens.size();
    bool known = word.size() <= max_chars_;
    for (std::size_t at = 0; known && at < word.size();) {
      std::size_t end = at, i = at;
      std::int32_t number = -1;
      if (at == 0 || inside_) {
        const Trie& trie = vocabulary().trie();
        for (Trie::Node node = at == 0 ? Trie::root() : *inside_; i < word.size();) {
          if ((node = trie.child(node, word[i++].code)) == 0) break;
          if (const std::int32_t found = trie.number(node); found >= 0) {
            end = i;
            number = found;
          }
        }
      }
      budget.spend(i - at);
      known = number >= 0;
      if (!known) break;
      tokens.push_back(token(number, word, at, end));
      at = end;
    }
    if (known) return;
    tokens.resize(before);
    tokens.push_back(token(unknown_.needed(), word, 0, word.size()));
  }

 private:
  UnknownToken unknown_;
  std::optional<Trie::Node> inside_;
  std::size_t max_chars_;
};

}  // namespace

std::unique_ptr<const Model> read_word_piece(const Value& section, Json& json) {
  const std::string unknown = section["unk_token"].string();
  const std::u32string prefix = code_points(section["continuing_subword_prefix"].token(kMaxAffix));
  const auto max_chars = static_cast<std::size_t>(section["max_input_chars_per_word"].whole());
  Vocabulary vocabulary = read_tokens(json);
  UnknownToken stands(vocabulary.find_text(unknown), "\"" + unknown + "\"", "tokenizer.json.model.unk_token");
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(stands), prefix, max_chars);
}

}  // namespace attn::detail
