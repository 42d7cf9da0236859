#include "attn/io/tokenizer_file.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "attn/io/json.hpp"
#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"

namespace attn::detail {
namespace {

// The largest published one has 17 MB.
constexpr std::size_t kMaxBytes = 64 << 20;
// A word costs the square of its length at the worst, and a text costs its length times this. Files have 100.
constexpr std::int64_t kMaxCharsPerWord = 1000;

/// A value of the file and where it stands, for messages.
class Value {
 public:
  Value(std::string_view file, const Json* json, std::string path = "") : file_(file), json_(json), path_(std::move(path)) {}

  bool is_there() const { return json_ != nullptr && !json_->is_null(); }
  const char* kind() const { return is_there() ? json_->kind() : "missing"; }
  [[noreturn]] void refuse(ErrorCode code, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got) const {
    fail(code, file_, path_.empty() ? "the file" : path_, expected, got);
  }

  Value operator[](std::string_view name) const { return {file_, json_ != nullptr ? json_->find(name) : nullptr, join(name)}; }
  Value operator[](std::size_t place) const { return {file_, &array()[place], join(std::to_string(place))}; }

  const Json::Object& object() const { return as(json_ != nullptr ? json_->object() : nullptr, "an object"); }
  const Json::Array& array() const { return as(json_ != nullptr ? json_->array() : nullptr, "an array"); }
  const std::string& string() const { return as(json_ != nullptr ? json_->string() : nullptr, "a string"); }
  /// A string of so many characters at the most.
  const std::string& token(std::size_t most = kMaxToken) const {
    at_most(decode_utf8(string()).value().size(), most, " characters");
    return string();
  }
  void at_most(std::size_t count, std::size_t most, const char* what) const {
    if (count > most) refuse(ErrorCode::unsupported, {"at most ", most, what}, {count, what});
  }
  bool boolean() const { return as(json_ != nullptr ? json_->boolean() : nullptr, "true or false"); }
  std::int32_t whole(std::int64_t most = 0x7fffffff) const {
    const double number = as(json_ != nullptr ? json_->number() : nullptr, "a number");
    if (!(number >= 0) || number > static_cast<double>(most) || std::floor(number) != number)
      refuse(ErrorCode::format, {"a whole number from 0 to ", most}, {number});
    return static_cast<std::int32_t>(number);
  }

  /// Of the kinds that a part of a tokenizer may have: `type` must be the one of these that is said.
  void expect_type(std::initializer_list<std::string_view> known) const {
    const std::string& type = (*this)["type"].string();
    if (std::find(known.begin(), known.end(), type) != known.end()) return;
    std::string words;
    for (const std::string_view each : known) words += (words.empty() ? "" : " or ") + std::string(each);
    (*this)["type"].refuse(ErrorCode::unsupported, {words, ": the native tokenizer is WordPiece alone; ids from elsewhere always work"}, {type});
  }
  /// A member that it does not know may change what the part does.
  void only(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : object())
      if (std::find(known.begin(), known.end(), name) == known.end())
        (*this)[name].refuse(ErrorCode::unsupported, {"left out"}, {Value(file_, &value).kind()});
  }

 private:
  template <class T>
  const T& as(const T* value, const char* expected) const {
    if (value == nullptr) refuse(ErrorCode::format, {expected}, {kind()});
    return *value;
  }
  std::string join(std::string_view name) const { return path_.empty() ? std::string(name) : text({path_, ".", name}); }

  std::string_view file_;
  const Json* json_;
  std::string path_;
};

/// Of a string in the file: the JSON parser lets only UTF-8 pass.
std::u32string code_points(std::string_view utf8) { return code_points(decode_utf8(utf8).value()); }

/// tokenizer_config.json, which sets some values anew: as the classes of transformers have it that are made for a kind of model. Those for any
/// tokenizer.json take it as it is.
class Settings {
 public:
  Settings(const Value& config, std::string_view default_class) : config_(config) {
    const Value name = config["tokenizer_class"];
    count_ = !name.is_there() || (name.string() != "PreTrainedTokenizerFast" && name.string() != "TokenizersBackend");
    has_defaults_ = count_ && (name.is_there() || !default_class.empty());
  }

  /// Whether what is left out there is the class's own default, whatever tokenizer.json says.
  bool has_defaults() const { return has_defaults_; }
  bool is_there(std::string_view name) const { return count_ && config_[name].is_there(); }
  bool boolean(std::string_view name, const Value& otherwise) const { return is_there(name) ? config_[name].boolean() : otherwise.boolean(); }
  /// true is the class's default.
  bool boolean_or_true(std::string_view name, const Value& otherwise) const {
    return has_defaults_ && !is_there(name) ? true : boolean(name, otherwise);
  }

 private:
  Value config_;
  bool count_ = false, has_defaults_ = false;
};

BertNormalizer read_normalizer(const Value& value, const Settings& settings) {
  if (!value.is_there()) return {};
  value.expect_type({"BertNormalizer"});
  value.only({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool lowercase = settings.boolean_or_true("do_lower_case", value["lowercase"]);
  const bool strips = settings.is_there("strip_accents") || (!settings.has_defaults() && value["strip_accents"].is_there());
  return {.clean_text = value["clean_text"].boolean(),
          .handle_chinese_chars = settings.boolean_or_true("tokenize_chinese_chars", value["handle_chinese_chars"]),
          .strip_accents = strips ? settings.boolean("strip_accents", value["strip_accents"]) : lowercase,
          .lowercase = lowercase};
}

void read_pre_tokenizer(const Value& value) {
  if (!value.is_there()) value.refuse(ErrorCode::unsupported, {"BertPreTokenizer"}, {value.kind()});
  value.expect_type({"BertPreTokenizer"});
  value.only({"type"});
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

/// Takes the vocabulary out of `json`, which is the file, value by value, before more is made of it: there are not two of it in memory.
WordPiece read_model(const Value& value, Json& json, TokenTexts& tokens) {
  value.expect_type({"WordPiece"});
  value.only({"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  const auto& vocabulary = value["vocab"].object();
  std::size_t bytes = 0, characters = 0;
  for (const auto& [token, id] : vocabulary) {
    Value("tokenizer.json", &id, "model.vocab").whole();
    const std::size_t count = count_characters(token);
    value["vocab"].at_most(count, kMaxToken, " characters in a token");
    bytes += token.size();
    characters += count;
  }
  const Value unknown = value["unk_token"];
  const auto found = vocabulary.find(unknown.string());
  if (found == vocabulary.end()) unknown.refuse(ErrorCode::format, {"a token of model.vocab"}, {"\"", unknown.string(), "\""});
  const auto unknown_id = static_cast<std::int32_t>(*found->second.number());
  const std::int32_t most = value["max_input_chars_per_word"].whole(kMaxCharsPerWord);
  const std::u32string prefix = code_points(value["continuing_subword_prefix"].token(kMaxAffix));

  tokens.reserve(vocabulary.size(), bytes);
  Json::Object& words = *json.object()->find("model")->second.object()->find("vocab")->second.object();
  for (auto word = words.begin(); word != words.end(); word = words.erase(word))
    tokens.add(static_cast<std::int32_t>(*word->second.number()), word->first);
  Trie trie(tokens.size(), characters);
  tokens.for_each([&](std::int32_t id, std::string_view token) { trie.add(code_points(token), id); });
  tokens.sort();
  return WordPiece(std::move(trie), unknown_id, prefix, static_cast<std::size_t>(most));
}

/// As the library adds them: a token of the vocabulary keeps its id, another gets the next one, whatever the file says.
void read_added_tokens(const Value& value, TokenizerFile& file) {
  if (!value.is_there()) return;
  const std::int64_t vocabulary_size = file.size;
  std::int64_t largest = -1;
  value.at_most(value.array().size(), kMaxAddedTokens, " tokens");
  for (std::size_t i = 0; i < value.array().size(); ++i) {
    const Value given = value[i];
    AddedToken token{.content = given["content"].token(),
                     .single_word = given["single_word"].boolean(),
                     .lstrip = given["lstrip"].boolean(),
                     .rstrip = given["rstrip"].boolean(),
                     .normalized = given["normalized"].boolean()};
    given["special"].boolean();
    given["id"].whole();
    if (token.content.empty()) given["content"].refuse(ErrorCode::format, {"1 character or more"}, {0});
    if (file.added_ids.contains(token.content)) given["content"].refuse(ErrorCode::format, {"one of each"}, {"\"", token.content, "\" again"});
    const auto node = file.model.vocabulary().find(code_points(token.content));
    const auto known = node ? file.model.vocabulary().id(*node) : std::nullopt;
    if (!known) ++file.size;
    token.id = known ? *known : static_cast<std::int32_t>(std::max(vocabulary_size, largest + 1));
    if (token.id == 0x7fffffff) given["id"].refuse(ErrorCode::format, {"less than 2^31 - 1"}, {token.id});
    largest = std::max<std::int64_t>(largest, token.id);
    file.added_ids.emplace(token.content, token.id);
    file.added.push_back(std::move(token));
  }
  const auto content_of = [&](const AddedToken& token) {
    Chars chars = decode_utf8(token.content).value();
    return token.normalized ? file.normalizer.normalized(std::move(chars)) : chars;
  };
  for (const bool normalized : {false, true}) {
    std::size_t words = 0, characters = 0;
    for (std::size_t i = 0; i < file.added.size(); ++i) {
      const AddedToken& token = file.added[i];
      if (token.normalized != normalized) continue;
      const Chars chars = content_of(token);
      // The empty text would be found everywhere.
      if (chars.empty()) value[i]["content"].refuse(ErrorCode::unsupported, {"something that normalisation leaves"}, {"\"", token.content, "\""});
      ++words;
      characters += chars.size();
    }
    Trie& trie = normalized ? file.added_normalized : file.added_raw;
    trie = Trie(words, characters);
    for (std::size_t i = 0; i < file.added.size(); ++i) {
      const AddedToken& token = file.added[i];
      if (token.normalized != normalized) continue;
      const Chars chars = content_of(token);
      trie.add(code_points(chars), static_cast<std::int32_t>(i));
      std::string content;
      for (const Char& c : chars) append_utf8(content, c.code);
      file.added_tokens.emplace(token.id, std::move(content));
    }
  }
}

Template read_template(const Value& value, const Value& special_tokens, bool pair) {
  Template pieces;
  int firsts = 0, seconds = 0;
  std::size_t added = 0;
  for (std::size_t i = 0; i < value.array().size(); ++i) {
    const Value given = value[i], special = given["SpecialToken"], sequence = given["Sequence"];
    TemplatePiece piece;
    if (special.is_there()) {
      const std::string& name = special["id"].string();
      const Value token = special_tokens[name];
      if (!token.is_there()) special["id"].refuse(ErrorCode::format, {"one of special_tokens"}, {"\"", name, "\""});
      // A file can name one token of many ids many times.
      added += std::max({token["ids"].array().size(), token["tokens"].array().size(), std::size_t{1}});
      value.at_most(added, kMaxSpecialTokens, " special tokens");
      for (std::size_t k = 0; k < token["ids"].array().size(); ++k) piece.ids.push_back(token["ids"][k].whole());
      for (std::size_t k = 0; k < token["tokens"].array().size(); ++k) piece.tokens.push_back(token["tokens"][k].token());
      if (piece.ids.size() != piece.tokens.size())
        token["tokens"].refuse(ErrorCode::format, {"as many as ids, ", piece.ids.size()}, {piece.tokens.size()});
      piece.type_id = special["type_id"].whole();
    } else {
      const std::string& name = sequence["id"].string();
      if (name != "A" && name != "B") sequence["id"].refuse(ErrorCode::format, {"A or B"}, {"\"", name, "\""});
      piece.kind = name == "A" ? TemplatePiece::Kind::first : TemplatePiece::Kind::second;
      ++(name == "A" ? firsts : seconds);
      piece.type_id = sequence["type_id"].whole();
    }
    pieces.push_back(std::move(piece));
  }
  if (firsts != 1 || seconds != (pair ? 1 : 0))
    value.refuse(ErrorCode::unsupported, {pair ? "A and B once each" : "A once and no B"}, {firsts, " times A and ", seconds, " times B"});
  return pieces;
}

void read_post_processor(const Value& value, const Settings& settings, TokenizerFile& file) {
  const auto first = [](std::int32_t type_id) { return TemplatePiece{.kind = TemplatePiece::Kind::first, .type_id = type_id}; };
  const auto second = [](std::int32_t type_id) { return TemplatePiece{.kind = TemplatePiece::Kind::second, .type_id = type_id}; };
  if (!value.is_there()) {
    file.single = {first(0)};
    file.pair = {first(0), second(1)};
    return;
  }
  value.expect_type({"TemplateProcessing", "BertProcessing", "RobertaProcessing"});
  if (value["type"].string() == "TemplateProcessing") {
    value.only({"type", "single", "pair", "special_tokens"});
    value["special_tokens"].object();
    file.single = read_template(value["single"], value["special_tokens"], false);
    file.pair = read_template(value["pair"], value["special_tokens"], true);
    return;
  }
  const auto special = [](const Value& token, std::int32_t type_id) {
    if (token.array().size() != 2) token.refuse(ErrorCode::format, {"a token and its id"}, {token.array().size(), " values"});
    return TemplatePiece{.type_id = type_id, .ids = {token[1].whole()}, .tokens = {token[0].token()}};
  };
  const Value cls = value["cls"], sep = value["sep"];
  file.single = {special(cls, 0), first(0), special(sep, 0)};
  if (value["type"].string() == "BertProcessing") {
    value.only({"type", "cls", "sep"});
    file.pair = {special(cls, 0), first(0), special(sep, 0), second(1), special(sep, 1)};
  } else {
    value.only({"type", "cls", "sep", "trim_offsets", "add_prefix_space"});
    file.pair = {special(cls, 0), first(0), special(sep, 0), special(sep, 0), second(0), special(sep, 0)};
    file.trim_offsets = value["trim_offsets"].boolean();
    file.add_prefix_space = settings.boolean("add_prefix_space", value["add_prefix_space"]);
  }
}

std::optional<std::int32_t> token_id(const TokenizerFile& file, const std::string& token) {
  if (const auto added = file.added_ids.find(token); added != file.added_ids.end()) return added->second;
  const auto node = file.model.vocabulary().find(code_points(token));
  return node ? file.model.vocabulary().id(*node) : std::nullopt;
}

/// As transformers' AutoTokenizer: tokenizer_config.json goes before tokenizer.json.
void read_padding(const Value& value, const Value& config, TokenizerFile& file) {
  std::vector<std::string> candidates;
  for (const char* side : {"padding_side", "truncation_side"})
    if (config[side].is_there() && config[side].string() != "right") config[side].refuse(ErrorCode::unsupported, {"right"}, {config[side].string()});
  // Older files have the token with its flags.
  const Value given = config["pad_token"];
  if (given.is_there()) candidates.push_back(given["content"].is_there() ? given["content"].token() : given.token());
  if (value.is_there()) {
    if (value["pad_type_id"].is_there()) file.pad_type_id = value["pad_type_id"].whole();
    if (value["pad_token"].is_there()) candidates.push_back(value["pad_token"].token());
  }
  if (candidates.size() > 1) candidates.pop_back();
  for (const char* usual : {"[PAD]", "<pad>"}) candidates.emplace_back(usual);
  const auto known = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& token) { return token_id(file, token).has_value(); });
  file.pad_token = known != candidates.end() ? *known : candidates.front();
  file.pad_id = token_id(file, file.pad_token).value_or(0);
}

}  // namespace

void TokenTexts::reserve(std::size_t tokens, std::size_t bytes) {
  places_.reserve(tokens);
  bytes_.reserve(bytes);
}

void TokenTexts::add(std::int32_t id, std::string_view token) {
  places_.push_back({id, static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(token.size())});
  bytes_ += token;
}

void TokenTexts::sort() {
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.id != b.id ? a.id < b.id : a.begin < b.begin; });
}

std::optional<std::string_view> TokenTexts::find(std::int32_t id) const {
  const auto place = std::lower_bound(places_.begin(), places_.end(), id, [](const Place& a, std::int32_t wanted) { return a.id < wanted; });
  if (place == places_.end() || place->id != id) return std::nullopt;
  return text(*place);
}

TokenizerFile read_tokenizer_file(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                                  std::string_view default_class) {
  Json json = parse_json("tokenizer.json", tokenizer_json, kMaxBytes);
  const Value root("tokenizer.json", &json);
  root.object();
  if (const Value version = root["version"]; version.is_there() && version.string() != "1.0")
    version.refuse(ErrorCode::unsupported, {"1.0"}, {version.string()});
  const Json config_json = tokenizer_config ? parse_json("tokenizer_config.json", *tokenizer_config, kMaxBytes) : Json();
  const Value config("tokenizer_config.json", tokenizer_config ? &config_json : nullptr);
  if (tokenizer_config) config.object();
  const Settings settings(config, default_class);
  TokenTexts tokens;
  const BertNormalizer normalizer = read_normalizer(root["normalizer"], settings);
  read_pre_tokenizer(root["pre_tokenizer"]);
  WordPiece model = read_model(root["model"], json, tokens);
  TokenizerFile file{.normalizer = normalizer, .model = std::move(model), .tokens = std::move(tokens)};
  file.size = static_cast<std::int64_t>(file.tokens.size());
  read_added_tokens(root["added_tokens"], file);
  read_post_processor(root["post_processor"], settings, file);
  read_padding(root["padding"], config, file);
  return file;
}

}  // namespace attn::detail
