#include "attn/io/tokenizer/model.hpp"

#include <utility>

#include "attn/io/tokenizer/bpe.hpp"
#include "attn/io/tokenizer/unigram.hpp"
#include "attn/io/tokenizer/word_level.hpp"
#include "attn/io/tokenizer/word_piece.hpp"

namespace attn::detail {

std::int32_t UnknownToken::needed() const {
  if (number_ < 0)
    fail(ErrorCode::format, "tokenize", path_, {"a token of the vocabulary"}, {name_}, "The text has characters that are not in the vocabulary");
  return number_;
}

Json take(Json& object, std::string_view name) {
  Json taken;
  if (Json::Object* members = object.object())
    if (Json* const found = members->find(name)) taken = std::exchange(*found, Json());
  return taken;
}

Vocabulary read_tokens(Json& model) {
  Json taken = take(model, "vocab");
  const Value value("tokenizer.json", &taken, "model.vocab");
  std::size_t bytes = 0;
  for (const auto& [token, id] : value.object()) {
    Value("tokenizer.json", &id, "model.vocab").whole();
    value.at_most(count_characters(token), kMaxToken, " characters in a token");
    bytes += token.size();
  }
  Vocabulary vocabulary;
  const Json::Object& words = *taken.object();
  vocabulary.reserve(words.size(), bytes);
  for (const auto& [token, id] : words) vocabulary.add(static_cast<std::int32_t>(*id.number()), token);
  taken = Json();  // frees memory for the trie
  vocabulary.finish();
  return vocabulary;
}

ByteFallback::ByteFallback(const Value& section, const Vocabulary& vocabulary) {
  if (!section["byte_fallback"].boolean_or(false)) return;
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte)
    numbers_.push_back(vocabulary.shared(vocabulary.find_text(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">")));
}

bool ByteFallback::append(std::u32string_view codes, std::vector<std::int32_t>& numbers) const {
  if (numbers_.empty()) return false;
  const std::size_t before = numbers.size();
  for (const char32_t code : codes)
    for (const std::uint8_t byte : utf8(code)) {
      if (numbers_[byte] < 0) {
        numbers.resize(before);
        return false;
      }
      numbers.push_back(numbers_[byte]);
    }
  return true;
}

namespace {

using Read = std::unique_ptr<const Model> (*)(const Value&, Json&);
constexpr Named<Read> kModels[] = {{"WordPiece", read_word_piece}, {"BPE", read_bpe}, {"Unigram", read_unigram}, {"WordLevel", read_word_level}};

}  // namespace

std::unique_ptr<const Model> read_model(Json& json) {
  const Value section("tokenizer.json", &json, "model");
  section.object();
  // Older files have no type.
  if (!section["type"].is_there()) {
    if (section["merges"].is_there()) return read_bpe(section, json);
    if (section["vocab"].is_array()) return read_unigram(section, json);
    if (section["continuing_subword_prefix"].is_there()) return read_word_piece(section, json);
  }
  return choose(kModels, section["type"])(section, json);
}

}  // namespace attn::detail
