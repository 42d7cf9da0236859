#include "attn/io/tokenizer.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <functional>

#include "support/golden.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace io_tokenizer_test {

using nlohmann::json;

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

json read_json(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> text = bytes_of(path);
  return json::parse(text.begin(), text.end());
}

Tokenizer tokenizer_of(const json& file, const std::string& config = "", std::string_view default_class = {}) {
  return config.empty() ? Tokenizer::parse(bytes(file.dump()), std::nullopt, default_class)
                        : Tokenizer::parse(bytes(file.dump()), bytes(config), default_class);
}

json small_file() {
  return json::parse(R"({
    "version": "1.0", "truncation": {"max_length": 3}, "padding": null,
    "added_tokens": [
      {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
      {"id": 4, "content": "[MASK]", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
      "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
      "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "play": 5, "##ing": 6, "##i": 7, "e": 8, "##e": 9, ",": 10,
                "constructor": 11, "__proto__": 12, "_": 13, "<pad>": 14}}})");
}

json changed(const char* pointer, const json& value) {
  json file = small_file();
  file[json::json_pointer(pointer)] = value;
  return file;
}
json without(const char* parent, const char* name) {
  json file = small_file();
  file[json::json_pointer(parent)].erase(name);
  return file;
}

std::vector<std::int32_t> row(const xt::xtensor<std::int32_t, 2>& tensor, std::size_t b = 0) {
  const std::int32_t* first = tensor.data() + b * tensor.shape()[1];
  return {first, first + tensor.shape()[1]};
}

json offsets_of(const Encoding::Offsets& offsets) {
  json all = json::array();
  for (const auto& each : offsets) all.push_back(each ? json{each->first, each->second} : json());
  return all;
}

std::vector<std::int32_t> ids(const Tokenizer& tokenizer, const std::string& text) { return row(tokenizer.encode({text}).input_ids); }

TEST_CASE("every option of WordPiece's parts gives the ids, tokens and offsets of Hugging Face tokenizers", "[io]") {
  const json all = read_json(testdata("word_piece.json"));
  REQUIRE(all.size() == 7);
  for (const json& each : all) {
    INFO(each.at("name"));
    const Tokenizer tokenizer = tokenizer_of(each.at("file"));
    CHECK(tokenizer.vocabulary_size() == each.at("size"));
    for (const auto& [token, id] : each.at("ids").items()) {
      INFO(token);
      CHECK(tokenizer.token_to_id(token) == (id.is_null() ? std::nullopt : std::optional<std::int64_t>(id)));
    }
    for (const auto& [id, token] : each.at("tokens").items()) {
      INFO(id);
      CHECK(tokenizer.id_to_token(std::stoll(id)) == (token.is_null() ? std::nullopt : std::optional<std::string>(token)));
    }
    for (const json& c : each.at("cases")) {
      INFO(c.at("texts"));
      const json& texts = c.at("texts");
      TokenizeOptions options;
      if (!c.at("max_length").is_null()) options.max_length = c.at("max_length");
      const Encoding encoding = texts.size() == 1 ? tokenizer.encode({texts[0]}, options) : tokenizer.encode_pairs({{texts[0], texts[1]}}, options);
      CHECK(json(row(encoding.input_ids)) == c.at("ids"));
      CHECK(json(row(encoding.token_type_ids)) == c.at("type_ids"));
      CHECK(json(encoding.tokens.at(0)) == c.at("tokens"));
      CHECK(offsets_of(encoding.offsets.at(0)) == c.at("offsets"));
      CHECK(encoding.truncated.at(0) == c.at("truncated"));
      CHECK(std::all_of(encoding.attention_mask.begin(), encoding.attention_mask.end(), [](std::uint8_t real) { return real == 1; }));
    }
  }
}

TEST_CASE("rows are padded to the longest one", "[io]") {
  const Encoding encoding = tokenizer_of(small_file()).encode({"play", "playing, playing", ""});
  CHECK(encoding.input_ids == xt::xtensor<std::int32_t, 2>{{2, 5, 3, 0, 0, 0, 0}, {2, 5, 6, 10, 5, 6, 3}, {2, 3, 0, 0, 0, 0, 0}});
  CHECK(encoding.attention_mask == xt::xtensor<std::uint8_t, 2>{{1, 1, 1, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 0, 0, 0, 0, 0}});
  CHECK(encoding.tokens[0] == std::vector<std::string>{"[CLS]", "play", "[SEP]", "[PAD]", "[PAD]", "[PAD]", "[PAD]"});
  CHECK(offsets_of(encoding.offsets[0]) == json::parse("[null,[0,4],null,null,null,null,null]"));
  CHECK(encoding.truncated == std::vector<bool>(3, false));
}

TEST_CASE("an empty list of texts gives no rows", "[io]") {
  const Encoding encoding = tokenizer_of(small_file()).encode({});
  CHECK(encoding.input_ids.shape() == std::array<std::size_t, 2>{0, 0});
  CHECK(encoding.tokens.empty());
}

TEST_CASE("the padding token is that of the configuration, else of the file, else a usual one", "[io]") {
  const auto padding = [](const json& file, const std::string& config) {
    const Encoding encoding = tokenizer_of(file, config).encode({"", "e"});
    return std::tuple(encoding.input_ids(0, 2), encoding.token_type_ids(0, 2), encoding.tokens[0][2]);
  };
  const std::string config = R"({"pad_token": "<pad>", "padding_side": "right"})", old = R"({"pad_token": {"content": "<pad>", "lstrip": false}})";
  const json own = changed("/padding", {{"strategy", "BatchLongest"}, {"pad_id", 7}, {"pad_type_id", 1}, {"pad_token", "##i"}});
  CHECK(padding(small_file(), "") == std::tuple(0, 0, "[PAD]"));
  CHECK(padding(small_file(), "{}") == std::tuple(0, 0, "[PAD]"));
  CHECK(padding(small_file(), config) == std::tuple(14, 0, "<pad>"));
  CHECK(padding(small_file(), old) == std::tuple(14, 0, "<pad>"));
  // As in transformers, a missing token gets the next id.
  CHECK(padding(small_file(), R"({"pad_token": "<none>"})") == std::tuple(15, 0, "<none>"));
  CHECK(padding(own, "") == std::tuple(7, 1, "##i"));
  CHECK(padding(own, config) == std::tuple(14, 1, "<pad>"));
}

TEST_CASE("property names of JavaScript objects are ordinary words", "[io]") {
  const Tokenizer tokenizer = tokenizer_of(small_file());
  CHECK(ids(tokenizer, "constructor") == std::vector<std::int32_t>{2, 11, 3});
  CHECK(ids(tokenizer, "toString") == std::vector<std::int32_t>{2, 1, 3});
  CHECK(tokenizer.token_to_id("__proto__") == 12);
  CHECK(tokenizer.token_to_id("toString") == std::nullopt);
  CHECK(tokenizer.token_to_id("\xff") == std::nullopt);
  CHECK(tokenizer.id_to_token(12) == "__proto__");
  CHECK(tokenizer.id_to_token(15) == std::nullopt);
  CHECK(tokenizer.id_to_token(-1) == std::nullopt);
  CHECK(tokenizer.id_to_token(std::int64_t{1} << 32) == std::nullopt);
}

TEST_CASE("a special token in a user's text is that token and has offsets", "[io]") {
  const Encoding encoding = tokenizer_of(small_file()).encode({"play [MASK]e"});
  CHECK(row(encoding.input_ids) == std::vector<std::int32_t>{2, 5, 4, 8, 3});
  CHECK(offsets_of(encoding.offsets[0]) == json::parse("[null,[0,4],[4,11],[11,12],null]"));
}

TEST_CASE("the truncation of the file is ignored, and special tokens are never cut off", "[io]") {
  const Tokenizer tokenizer = tokenizer_of(small_file());
  CHECK(ids(tokenizer, "e e e e") == std::vector<std::int32_t>{2, 8, 8, 8, 8, 3});
  const Encoding cut = tokenizer.encode({"e e e e", "e"}, {.max_length = 4});
  CHECK(row(cut.input_ids) == std::vector<std::int32_t>{2, 8, 8, 3});
  CHECK(cut.truncated == std::vector<bool>{true, false});
  CHECK(row(tokenizer.encode({"e e"}, {.max_length = 2}).input_ids) == std::vector<std::int32_t>{2, 3});
  check_error({ErrorCode::out_of_range, "tokenize", "max_length", {"is 1", "at least 2"}}, [&] { tokenizer.encode({"e"}, {.max_length = 1}); });
  check_error({ErrorCode::out_of_range, "tokenize", "max_length", {"at least 3"}}, [&] { tokenizer.encode_pairs({{"e", "e"}}, {.max_length = -1}); });
}

double index_of(const Error& error) { return std::get<double>(error.detail().at("index")); }

TEST_CASE("without truncation, an overlong text is refused with its index", "[io]") {
  const Tokenizer tokenizer = tokenizer_of(small_file());
  CHECK(tokenizer.encode({"e e e"}, {.max_length = 5, .truncation = false}).input_ids.shape()[1] == 5);
  const auto call = [&] { tokenizer.encode({"e", "e e e e"}, {.max_length = 5, .truncation = false}); };
  check_error({ErrorCode::out_of_range, "tokenize", "text 1", {"6 tokens", "at most 5"}}, call);
  try {
    call();
  } catch (const Error& error) {
    CHECK(index_of(error) == 1);
  }
}

TEST_CASE("a text that is not UTF-8 is refused with its index", "[io]") {
  const Tokenizer tokenizer = tokenizer_of(small_file());
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "e\xe4\xb8", "\x80"}) {
    INFO(json(std::string(bad)).dump(-1, ' ', true, json::error_handler_t::replace));
    check_error({ErrorCode::argument, "tokenize", "text 1", {"UTF-8"}}, [&] { tokenizer.encode({"e", bad}); });
    check_error({ErrorCode::argument, "tokenize", "text 0", {"UTF-8"}}, [&] { tokenizer.encode_pairs({{"e", bad}}); });
  }
  try {
    tokenizer.encode({"e", "e", "\xff"});
  } catch (const Error& error) {
    CHECK(index_of(error) == 2);
  }
}

TEST_CASE("adversarial texts take no longer than others", "[io]") {
  json file = changed("/model/max_input_chars_per_word", 1000);
  file["model"]["vocab"][std::string(1000, 'a')] = 15;
  file["model"]["vocab"]["##" + std::string(1000, 'a')] = 16;
  file["model"]["vocab"]["a"] = 17;
  file["model"]["vocab"]["##a"] = 18;
  const Tokenizer tokenizer = tokenizer_of(file);
  CHECK(ids(tokenizer, std::string(10'000, 'a')) == std::vector<std::int32_t>{2, 1, 3});
  CHECK(ids(tokenizer, std::string(99, 'a')).size() == 101);
  std::string words, marks, masks;
  while (words.size() < 1 << 18) words += std::string(999, 'a') + ' ';
  while (marks.size() < 1 << 18) marks += "\xcc\x81\xcc\xa3";
  while (masks.size() < 1 << 18) masks += " [MASK";
  const auto started = std::chrono::steady_clock::now();
  check_error({ErrorCode::unsupported, "tokenize", "the text", {"256 per character"}}, [&] { tokenizer.encode({words}); });
  for (const std::string& text : {marks, masks, std::string(1 << 20, 'a'), std::string(1 << 20, ' '), std::string(1 << 18, '.')})
    tokenizer.encode({text}, {.max_length = 512});
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::minutes(2));
}

TEST_CASE("memory for a batch is estimated before it is allocated", "[io]") {
  const Tokenizer tokenizer = tokenizer_of(small_file());
  std::vector<std::string> texts(100);
  texts.push_back(std::string(30'000, '.'));
  set_memory_limit(1 << 23);
  check_error({ErrorCode::memory, "tokenize", "ids, tokens and offsets", {"bytes"}}, [&] { tokenizer.encode(texts); });
  check_error({ErrorCode::memory, "tokenize", "the characters of a text", {"bytes"}}, [&] { tokenizer.encode({std::string(1 << 20, ' ')}); });
  CHECK(tokenizer.encode({"e"}).tokens.size() == 1);
  set_memory_limit(std::uint64_t{1} << 63);
}

struct Refusal {
  const char* what;
  std::function<json()> file;
  std::string argument;
  std::vector<std::string> words;
  ErrorCode code = ErrorCode::format;
};

json with_added(json added) {
  json file = small_file();
  file["added_tokens"].push_back(std::move(added));
  return file;
}
json added_token(const std::string& content, bool normalized = false) {
  return {{"id", 15},        {"content", content},       {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", normalized}, {"special", false}};
}
json with_added_value(const char* name, const json& value) {
  json added = added_token("x");
  added[name] = value;
  return with_added(added);
}

constexpr ErrorCode kUnsupported = ErrorCode::unsupported;

const Refusal kRefusals[] = {
    {"an array", [] { return json::array(); }, "the file", {"an array", "an object"}},
    {"a number", [] { return json(5); }, "the file", {"a number", "an object"}},
    {"no model", [] { return without("", "model"); }, "model", {"missing", "an object"}},
    {"a model that is an array", [] { return changed("/model", json::array()); }, "model", {"an array", "an object"}},
    {"another model", [] { return changed("/model/type", "BPEtter"); }, "model.type", {"BPEtter", "WordPiece, BPE, Unigram"}, kUnsupported},
    {"a model without type and members",
     [] { return changed("/model", {{"vocab", json::object()}}); },
     "model.type",
     {"missing", "WordPiece"},
     kUnsupported},
    {"no vocabulary", [] { return without("/model", "vocab"); }, "model.vocab", {"missing", "an object"}},
    {"a vocabulary that is an array", [] { return changed("/model/vocab", json::array()); }, "model.vocab", {"an array"}},
    {"an id that is a string", [] { return changed("/model/vocab/e", "8"); }, "model.vocab", {"a string", "a number"}},
    {"an id that is null", [] { return changed("/model/vocab/e", nullptr); }, "model.vocab", {"a number"}},
    {"a negative id", [] { return changed("/model/vocab/e", -1); }, "model.vocab", {"-1", "whole"}},
    {"an id that is not whole", [] { return changed("/model/vocab/e", 0.5); }, "model.vocab", {"0.5", "whole"}},
    {"an id above 2^31", [] { return changed("/model/vocab/e", 4294967296); }, "model.vocab", {"2147483647"}},
    {"no unk_token", [] { return without("/model", "unk_token"); }, "model.unk_token", {"missing"}},
    {"no prefix", [] { return without("/model", "continuing_subword_prefix"); }, "model.continuing_subword_prefix", {"missing"}},
    {"no longest word", [] { return without("/model", "max_input_chars_per_word"); }, "model.max_input_chars_per_word", {"missing"}},
    {"a longest word below 0", [] { return changed("/model/max_input_chars_per_word", -1); }, "model.max_input_chars_per_word", {"-1"}},
    {"another normalizer", [] { return changed("/normalizer/type", "NFX"); }, "normalizer.type", {"NFX", "BertNormalizer"}, kUnsupported},
    {"a normalizer that is a string", [] { return changed("/normalizer", "NFC"); }, "normalizer.type", {"missing"}, kUnsupported},
    {"lowercase that is a number", [] { return changed("/normalizer/lowercase", 1); }, "normalizer.lowercase", {"a number", "true or false"}},
    {"no lowercase", [] { return without("/normalizer", "lowercase"); }, "normalizer.lowercase", {"missing"}},
    {"no clean_text", [] { return without("/normalizer", "clean_text"); }, "normalizer.clean_text", {"missing"}},
    {"another pre-tokenizer",
     [] { return changed("/pre_tokenizer/type", "Chat"); },
     "pre_tokenizer.type",
     {"Chat", "BertPreTokenizer"},
     kUnsupported},
    {"added tokens that are an object", [] { return changed("/added_tokens", json::object()); }, "added_tokens", {"an object", "an array"}},
    {"an added token that is a string", [] { return with_added("x"); }, "added_tokens.2.content", {"missing"}},
    {"an added token without content", [] { return with_added_value("content", nullptr); }, "added_tokens.2.content", {"missing", "a string"}},
    {"an added token of 1025 characters",
     [] { return with_added(added_token(std::string(1025, 'x'))); },
     "added_tokens.2.content",
     {"1025", "at most 1024 characters"},
     kUnsupported},
    {"more added tokens than any file has",
     [] { return changed("/added_tokens", json(json::array_t((1 << 18) + 1, added_token("x")))); },
     "added_tokens",
     {"262145", "at most 262144"},
     kUnsupported},
    {"a token of 1025 characters",
     [] { return changed(("/model/vocab/" + std::string(1025, 'x')).c_str(), 15); },
     "model.vocab",
     {"1025", "at most 1024"},
     kUnsupported},
    {"a prefix of 17 characters",
     [] { return changed("/model/continuing_subword_prefix", std::string(17, '#')); },
     "model.continuing_subword_prefix",
     {"17", "at most 16"},
     kUnsupported},
    {"a special token of 1025 characters",
     [] { return changed("/post_processor/special_tokens/[CLS]/tokens/0", std::string(1025, 'x')); },
     "post_processor.special_tokens.[CLS].tokens.0",
     {"1025"},
     kUnsupported},
    {"a template that names a token of no ids many times",
     [] {
       json file = changed("/post_processor/special_tokens/[CLS]", {{"id", "[CLS]"}, {"ids", json::array()}, {"tokens", json::array()}});
       json& single = file["/post_processor/single"_json_pointer];
       for (int i = 0; i < 1024; ++i) single.push_back(single[0]);
       return file;
     },
     "post_processor.single",
     {"1025", "at most 1024 special tokens"},
     kUnsupported},
    {"a cls of 1025 characters",
     [] { return changed("/post_processor", {{"type", "BertProcessing"}, {"cls", {std::string(1025, 'x'), 2}}, {"sep", {"[SEP]", 3}}}); },
     "post_processor.cls.0",
     {"1025"},
     kUnsupported},
    {"padding with a token of 1025 characters",
     [] { return changed("/padding", {{"pad_token", std::string(1025, 'x')}}); },
     "padding.pad_token",
     {"1025"},
     kUnsupported},
    {"an added token without a flag", [] { return with_added_value("rstrip", nullptr); }, "added_tokens.2.rstrip", {"missing"}},
    {"a flag that is a number", [] { return with_added_value("single_word", 0); }, "added_tokens.2.single_word", {"a number"}},
    {"another post-processor",
     [] { return changed("/post_processor/type", "Chat"); },
     "post_processor.type",
     {"Chat", "TemplateProcessing"},
     kUnsupported},
    {"no template for one text", [] { return without("/post_processor", "single"); }, "post_processor.single", {"missing", "an array"}},
    {"a template without the text",
     [] { return changed("/post_processor/single", json::array()); },
     "post_processor.single",
     {"0 times A", "A once"},
     kUnsupported},
    {"a template with the text twice",
     [] { return changed("/post_processor/single/0", {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}); },
     "post_processor.single",
     {"2 times A"},
     kUnsupported},
    {"a template with a third text",
     [] { return changed("/post_processor/single/1/Sequence/id", "C"); },
     "post_processor.single.1.Sequence.id",
     {"\"C\""}},
    {"a template of neither", [] { return changed("/post_processor/single/0", json::object()); }, "post_processor.single.0.Sequence.id", {"missing"}},
    {"a negative type id",
     [] { return changed("/post_processor/single/1/Sequence/type_id", -1); },
     "post_processor.single.1.Sequence.type_id",
     {"-1"}},
    {"a special token that is not described",
     [] { return changed("/post_processor/single/0/SpecialToken/id", "<s>"); },
     "post_processor.single.0.SpecialToken.id",
     {"<s>", "special_tokens"}},
    {"ids and tokens of different number",
     [] { return changed("/post_processor/special_tokens/[CLS]/tokens", json::array()); },
     "post_processor.special_tokens.[CLS].tokens",
     {"is 0 tokens", "1 tokens, one for each id"}},
    {"no special tokens", [] { return without("/post_processor", "special_tokens"); }, "post_processor.special_tokens", {"missing"}},
    {"cls without an id",
     [] { return changed("/post_processor", {{"type", "BertProcessing"}, {"cls", {"[CLS]"}}, {"sep", {"[SEP]", 3}}}); },
     "post_processor.cls",
     {"1 values", "a token and its id"}},
    {"an id for cls that is a string",
     [] { return changed("/post_processor", {{"type", "BertProcessing"}, {"cls", {"[CLS]", "2"}}, {"sep", {"[SEP]", 3}}}); },
     "post_processor.cls.1",
     {"a string", "a number"}},
    {"RobertaProcessing without its flags",
     [] { return changed("/post_processor", {{"type", "RobertaProcessing"}, {"cls", {"[CLS]", 2}}, {"sep", {"[SEP]", 3}}}); },
     "post_processor.trim_offsets",
     {"missing"}},
    {"another version", [] { return changed("/version", "2.0"); }, "version", {"2.0", "1.0"}, kUnsupported},
    {"padding with a token that is a number", [] { return changed("/padding", {{"pad_token", 1}}); }, "padding.pad_token", {"a number"}},
    {"padding with a negative type id", [] { return changed("/padding", {{"pad_type_id", -1}}); }, "padding.pad_type_id", {"-1"}},
};

TEST_CASE("invalid tokenizers are refused with the name of the invalid part", "[io][tokenizer]") {
  tokenizer_of(small_file());
  for (const Refusal& refusal : kRefusals) DYNAMIC_SECTION(refusal.what) {
      check_error({refusal.code, "tokenizer.json", refusal.argument, refusal.words}, [&] { tokenizer_of(refusal.file()); });
    }
}

TEST_CASE("a file whose values would take many times its size is refused before it is read", "[io]") {
  const auto repeated = [](const std::string& each, int times) {
    std::string all = "[";
    for (int i = 0; i < times; ++i) all += each + ",";
    return all + each + "]";
  };
  std::string names = "{\"x\":0";
  for (int i = 0; i < 200'000; ++i) names += ",\"" + std::to_string(i) + "\":0";
  for (const std::string& file :
       {repeated("{}", 1'000'000), repeated("[]", 1'000'000), repeated("0", 1'000'000), names + "}", std::string(100'000, '[')}) {
    INFO(file.substr(0, 20));
    check_error({ErrorCode::unsupported, "tokenizer.json", "the file", {"values of", "expected at most"}}, [&] { Tokenizer::parse(bytes(file)); });
    check_error({ErrorCode::unsupported, "tokenizer_config.json", "the file", {"values of"}}, [&] { tokenizer_of(small_file(), file); });
  }
  tokenizer_of(changed("/truncation", std::string(1'000'000, '[') + "\"\\" + std::string(1'000'000, ',')));
}

TEST_CASE("added tokens that strip the same spaces agree with Hugging Face, up to a limit", "[io]") {
  const auto with_space = [](bool lstrip, bool rstrip) {
    json added = added_token(" ");
    added["lstrip"] = lstrip;
    added["rstrip"] = rstrip;
    return tokenizer_of(with_added(added));
  };
  const Tokenizer right = with_space(false, true);
  CHECK(right.encode({"e   e"}).tokens.at(0) == std::vector<std::string>{"[CLS]", "e", "   ", "  ", " ", "e", "[SEP]"});
  CHECK(offsets_of(right.encode({"e   e"}).offsets.at(0)) == json::parse("[null,[0,1],[1,4],[2,4],[3,4],[4,5],null]"));
  check_error({ErrorCode::unsupported, "tokenize", "the text", {"256 per character"}}, [&] { right.encode({std::string(100'000, ' ')}); });
  // Each looks for white space before it.
  const auto started = std::chrono::steady_clock::now();
  CHECK(with_space(true, false).encode({std::string(400'000, ' ')}).tokens.at(0).size() == 400'002);
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::minutes(2));
}

TEST_CASE("bytes that are not JSON are refused", "[io]") {
  const std::string good = small_file().dump();
  for (const std::string& bad : {std::string(), std::string("<!doctype html>"), good.substr(0, good.size() / 2), good + "x", good + '\0',
                                 "\xef\xbb\xbf" + good, std::string(100, '['), "{\"a\":\"\\ud800\"}" + std::string()}) {
    INFO(bad.substr(0, 40));
    check_error({ErrorCode::format, "tokenizer.json", "", {"tokenizer.json"}}, [&] { Tokenizer::parse(bytes(bad)); });
  }
  check_error({ErrorCode::format, "tokenizer_config.json", "", {"tokenizer_config.json"}}, [&] { tokenizer_of(small_file(), "<html>"); });
  check_error({ErrorCode::format, "tokenizer_config.json", "the file", {"an object"}}, [&] { tokenizer_of(small_file(), "[]"); });
  check_error({ErrorCode::format, "tokenizer_config.json", "pad_token.content", {"a string"}},
              [&] { tokenizer_of(small_file(), "{\"pad_token\":5}"); });
  for (const std::string side : {"padding_side", "truncation_side"})
    check_error({ErrorCode::unsupported, "tokenizer_config.json", side, {"left, right", "up"}},
                [&] { tokenizer_of(small_file(), "{\"" + side + "\":\"up\"}"); });
}

}  // namespace io_tokenizer_test
}  // namespace attn::test
