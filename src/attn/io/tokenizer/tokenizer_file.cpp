#include "attn/io/tokenizer/tokenizer_file.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "attn/io/tokenizer/other_tokens.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

constexpr const char* kOp = "tokenize";
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
// The largest published file has 35 MB.
constexpr std::size_t kMaxBytes = 64 << 20;

/// tokenizer_config.json's `setting` overrides `name` in parts of this type.
struct Setting {
  std::string_view type, name, setting;
};
constexpr Setting kSettings[] = {
    {"BertNormalizer", "lowercase", "do_lower_case"},
    {"BertNormalizer", "strip_accents", "strip_accents"},
    {"BertNormalizer", "handle_chinese_chars", "tokenize_chinese_chars"},
    {"ByteLevel", "add_prefix_space", "add_prefix_space"},
    {"RobertaProcessing", "add_prefix_space", "add_prefix_space"},
};

/// Overrides fields as model-specific classes of transformers do; generic ones use tokenizer.json unchanged.
void set_anew(Json* part, const Value& config, std::string_view default_class) {
  Json::Object* members = part != nullptr ? part->object() : nullptr;
  if (members == nullptr) return;
  const Value name = config["tokenizer_class"];
  if (name.is_there() && (name.string() == "PreTrainedTokenizerFast" || name.string() == "TokenizersBackend")) return;
  const Json* given = part->find("type");
  const std::string* type = given != nullptr ? given->string() : nullptr;
  if (type == nullptr) return;
  // Their defaults also override tokenizer.json.
  if (*type == "BertNormalizer" && ((name.is_there() && !name.string().empty()) || !default_class.empty())) {
    (*members)["lowercase"] = Json(true);
    (*members)["strip_accents"] = Json();
    (*members)["handle_chinese_chars"] = Json(true);
  }
  for (const Setting& each : kSettings)
    if (*type == each.type && config[each.setting].is_there()) (*members)[each.name] = Json(config[each.setting].boolean());
}

[[noreturn]] void refuse_bytes(std::size_t index) {
  ErrorDetail detail;
  detail.emplace("index", static_cast<double>(index));
  fail(ErrorCode::argument, kOp, detail::text({"text ", index}), {"valid UTF-8"}, {"invalid UTF-8"}, std::move(detail));
}

constexpr Named<Side> kSides[] = {{"left", Side::left}, {"right", Side::right}};

/// As in AutoTokenizer, tokenizer_config.json overrides tokenizer.json.
Padding read_padding(const Value& value, const Value& config, const TokenizerFile& file) {
  Padding padding;
  std::vector<std::string> candidates;
  if (const Value given = config["pad_token"]; given.is_there())
    candidates.push_back(given["content"].is_there() ? given["content"].token() : given.token());
  else if (value.is_there())
    candidates.push_back(value["pad_token"].token_or("[PAD]", kMaxToken));
  if (const Value type = value["pad_type_id"]; value.is_there() && type.is_there()) padding.type_id = type.whole();
  for (const char* usual : {"[PAD]", "<pad>"}) candidates.emplace_back(usual);
  const auto known =
      std::find_if(candidates.begin(), candidates.end(), [&](const std::string& token) { return file.token_to_id(token).has_value(); });
  padding.token = known != candidates.end() ? *known : candidates.front();
  padding.id = file.token_to_id(padding.token).value_or(0);
  return padding;
}

}  // namespace

std::optional<std::int32_t> TokenizerFile::token_to_id(std::string_view token) const {
  const auto id = added.id_of(token);
  return id ? id : model->vocabulary().id_of(token);
}

std::optional<std::string_view> TokenizerFile::id_to_token(std::int32_t id) const {
  const auto text = added.text_of(id);
  return text ? text : model->vocabulary().text_of(id);
}

bool TokenizerFile::add_tokens(std::string_view part, std::size_t begin, std::size_t index, std::optional<std::int32_t> word, std::size_t most,
                               TextTokens& made, bool is_open) const {
  MemoryEstimate memory(kOp);
  memory.add("the characters of a text", {static_cast<std::int64_t>(part.size()), 12});  // up to four lists of 12 bytes
  memory.check("the characters of a text");
  std::optional<Chars> chars = decode_utf8(part);
  if (!chars) refuse_bytes(index);
  for (Char& c : *chars) {
    c.start += static_cast<std::uint32_t>(begin);
    c.end += static_cast<std::uint32_t>(begin);
  }
  Budget& budget = made.budget;
  std::vector<Token>& tokens = made.tokens;
  Pieces pieces = added.extract(*chars, budget);
  pre_tokenizer(pieces, budget);
  std::int32_t number = 0;
  for (const Piece& piece : pieces.pieces) {
    const std::span<const Char> chars_of = pieces.of(piece);
    const std::size_t before = tokens.size();
    if (piece.added < 0)
      model->tokenize(chars_of, tokens, budget, is_open && &piece == &pieces.pieces.back());
    else
      tokens.push_back({.id = piece.added, .start = chars_of.front().start, .end = chars_of.back().end, .content = utf8_of(chars_of)});
    for (std::size_t i = before; i < tokens.size(); ++i) tokens[i].word = word.value_or(number);
    ++number;
    if (tokens.size() > most) return true;
    budget.hold(tokens.size());
  }
  return false;
}

TextTokens TokenizerFile::tokenize(const SourceText& text, std::size_t index, std::size_t most, Side cut) const {
  const FloatEnvironment environment;  // Unigram adds scores
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i].size() > std::numeric_limits<std::uint32_t>::max())
      fail(ErrorCode::argument, kOp, detail::text({"text ", index}), {"less than 2^32 bytes"}, {text[i].size(), " bytes"});
  const std::size_t characters = text.characters();
  const std::size_t enough = cut == Side::right ? most : kAll;
  const auto nothing = [&] { return TextTokens{.text = text, .budget = Budget(characters)}; };
  if (!text.are_words() && early_end.has(cut) && most < text[0].size()) {
    const std::string_view whole = text[0];
    bool is_checked = false;
    for (std::size_t size = 16 * most + 256; 2 * size < whole.size(); size *= 4) {
      const auto place = early_end_from(early_end, normalizer, whole, cut == Side::right ? size : whole.size() - size, cut);
      if (!place) continue;
      const std::size_t at = place->at;
      if (cut == Side::right && 2 * at > whole.size()) break;
      if (!std::exchange(is_checked, true) && !is_utf8(whole)) refuse_bytes(index);
      TextTokens made = nothing();
      add_tokens(cut == Side::right ? whole.substr(0, at) : whole.substr(at), cut == Side::right ? 0 : at, index, std::nullopt, enough, made,
                 place->is_open);
      if (made.tokens.size() > most) return made;
    }
  }
  TextTokens made = nothing();
  for (std::size_t i = 0; i < text.size(); ++i)
    if (add_tokens(text[i], 0, index, text.are_words() ? std::optional(static_cast<std::int32_t>(i)) : std::nullopt, enough, made)) break;
  return made;
}

void TokenizerFile::trim_offsets(TextTokens& text) const {
  for (const bool prefixed : post_processor.trims) detail::trim_offsets(text, model->vocabulary(), prefixed);
}

TokenizerFile read_tokenizer_file(std::span<const std::uint8_t> tokenizer_json, std::optional<std::span<const std::uint8_t>> tokenizer_config,
                                  std::string_view default_class, const OldTokenFiles& old_files) {
  const FloatEnvironment environment;
  Json json = parse_json("tokenizer.json", tokenizer_json, kMaxBytes);
  const Value root("tokenizer.json", &json);
  root.object();
  if (const Value version = root["version"]; version.is_there() && version.string() != "1.0")
    version.refuse(ErrorCode::unsupported, {"1.0"}, {version.string()});
  Json config_json = tokenizer_config ? parse_python_json("tokenizer_config.json", *tokenizer_config, kMaxBytes) : Json(Json::Object());
  const Value config("tokenizer_config.json", &config_json);
  config.object();
  merge_special_tokens(*config_json.object(), old_files.special_tokens_map
                                                  ? parse_python_json("special_tokens_map.json", *old_files.special_tokens_map, kMaxBytes)
                                                  : Json());
  const Json ids = old_files.added_tokens ? parse_python_json("added_tokens.json", *old_files.added_tokens, kMaxBytes) : Json();
  const auto side_of = [](const Value& side) { return side.is_there() ? choose(kSides, side) : Side::right; };
  const auto member = [&](std::string_view name) { return json.object()->find(name); };
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor"}) set_anew(member(part), config, default_class);

  // An unsupported part fails before the vocabulary is read.
  TokenizerFile file{.normalizer = [](Chars text, Budget&) { return text; }, .pre_tokenizer = [](Pieces&, Budget&) {}};
  if (const Value section = root["normalizer"]; section.is_there()) file.normalizer = read_normalizer(section);
  if (const Value section = root["pre_tokenizer"]; section.is_there()) file.pre_tokenizer = read_pre_tokenizer(section);
  if (const Value section = root["post_processor"]; section.is_there()) file.post_processor = read_post_processor(section);
  Json missing;
  Json* model = member("model");
  // Read before read_model() moves the section.
  const Value of_model = root["model"];
  const auto text_of = [](const Value& value) {
    if (!value.is_there()) return std::string();
    return value["content"].is_there() ? value["content"].token() : value.token();
  };
  const Value affix = of_model["continuing_subword_prefix"], unknown = of_model["unk_token"], unknown_id = of_model["unk_id"];
  const std::string unk_token = unknown.is_string() ? unknown.token() : "";
  const std::optional<std::int32_t> unk_id = unknown_id.is_there() ? std::optional(unknown_id.whole()) : std::nullopt;
  file.marks_words = affix.is_there() && !affix.token(kMaxAffix).empty();
  const Value type = root["model"]["type"];
  const bool is_bpe = type.is_string() ? type.string() == "BPE" : root["model"]["merges"].is_there();
  file.model = read_model(model != nullptr ? *model : missing);
  Json& added = (*json.object())["added_tokens"];
  if (added.is_null()) added = Json(Json::Array());
  if (added.array() != nullptr) append_other_tokens(*added.array(), config, Value("added_tokens.json", &ids));
  file.added = AddedTokens(root["added_tokens"], file.model->vocabulary(), file.normalizer, config["split_special_tokens"].boolean_or(false));
  try {
    if (const Value section = root["decoder"]; section.is_there()) file.decoder = read_decoder(section);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::memory) throw;
    file.no_decoder = error;
  }
  // As in transformers, not for BPE.
  file.cleans_up_spaces = config["clean_up_tokenization_spaces"].boolean_or(false) && !is_bpe;
  file.padding = read_padding(root["padding"], config, file);
  file.padding.side = side_of(config["padding_side"]);
  file.truncation_side = side_of(config["truncation_side"]);
  file.early_end = read_early_end(root["normalizer"], root["pre_tokenizer"], file.normalizer, file.added, file.model->takes_open_words());
  const auto special = [&](std::string_view name, std::initializer_list<std::string> usual) -> std::optional<std::int32_t> {
    std::vector<std::string> candidates{text_of(config[name])};
    candidates.insert(candidates.end(), usual);
    for (const std::string& token : candidates)
      if (const auto id = token.empty() ? std::nullopt : file.token_to_id(token)) return id;
    return std::nullopt;
  };
  file.cls_id = special("cls_token", {"[CLS]", "<s>"});
  file.mask_id = special("mask_token", {"[MASK]", "<mask>"});
  file.unk_id = special("unk_token", {unk_token});
  if (!file.unk_id) file.unk_id = unk_id;
  return file;
}

}  // namespace attn::detail
