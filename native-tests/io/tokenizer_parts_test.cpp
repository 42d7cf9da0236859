#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "attn/io/tokenizer.hpp"
#include "attn/io/tokenizer/budget.hpp"
#include "support/float_environment.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace io_tokenizer_parts_test {

using nlohmann::json;

const json kBpe = {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}};
const json kWordLevel = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"?", 0}, {"a", 1}, {"b", 2}}}};
const json kAdded = {{"id", 0}, {"content", "x"}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}};

json unigram(json pieces) { return {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", std::move(pieces)}}; }
json with(json value, const char* name, const json& member) {
  value[name] = member;
  return value;
}

Tokenizer made(const json& parts) {
  json file{{"version", "1.0"}, {"model", kWordLevel}};
  file.update(parts);
  const std::string text = file.dump();
  return Tokenizer::parse({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::vector<std::string> tokens(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode_texts(std::vector{text}).tokens.at(0);
}

json replace(const std::string& wanted, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{"String", wanted}}}, {"content", content}};
}
json split_by(const json& pattern) { return {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}}; }
json times(std::size_t count, const json& part) { return {{"type", "Sequence"}, {"normalizers", json::array_t(count, part)}}; }
json charsmap(const std::string& base64) { return {{"type", "Precompiled"}, {"precompiled_charsmap", base64}}; }

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 3; ++i) bits = bits << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// One rule, for 'a'.
json rule_for_a(const std::string& content) {
  std::vector<std::uint32_t> units(257);
  units[0] = 1U << 10;
  units[1 ^ 97] = 97U | 256U | static_cast<std::uint32_t>(1 ^ 97 ^ 98) << 10;
  units[98] = 1U << 31;
  std::string bytes;
  units.insert(units.begin(), static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(unit >> shift & 255);
  return charsmap(base64(bytes + content));
}

struct Refusal {
  const char* what;
  json parts;
  std::string argument;
  std::vector<std::string> words;
  ErrorCode code = ErrorCode::unsupported;
};

std::vector<Refusal> refusals() {
  constexpr ErrorCode kFormat = ErrorCode::format;
  const std::string long_text(257, 'b'), long_token(1025, 'a');
  const json cls_and_sep = {{"type", "BertProcessing"}, {"sep", {"s", 1}}, {"cls", {"c", 2}}};
  const json sequence = {{"type", "Sequence"}};
  std::vector<json> growing;
  for (int i = 0; i < 1000; ++i) growing.push_back(with(with(kAdded, "content", std::to_string(i) + "####"), "normalized", true));
  return {
      {"BPE with dropout", {{"model", with(kBpe, "dropout", 0.1)}}, "model.dropout", {"0.1", "null"}},
      {"BPE without merges", {{"model", with(kBpe, "merges", nullptr)}}, "model.merges", {"missing"}, kFormat},
      {"a merge of three", {{"model", with(kBpe, "merges", {"a b c"})}}, "model.merges.0", {"a b c", "two tokens"}, kFormat},
      {"a merge of one", {{"model", with(kBpe, "merges", json::array({json::array({"a"})}))}}, "model.merges.0", {"1 values"}, kFormat},
      {"a merge of unknown tokens", {{"model", with(kBpe, "merges", {"a c"})}}, "model.merges.0", {"\"c\""}, kFormat},
      {"a merge into an unknown token", {{"model", with(kBpe, "merges", {"b a"})}}, "model.merges.0", {"b + a"}, kFormat},
      {"a merge that is a number", {{"model", with(kBpe, "merges", {1})}}, "model.merges.0", {"a number"}, kFormat},
      {"Unigram with WordPiece's vocabulary", {{"model", unigram({{"a", 0}})}}, "model.vocab", {"an object"}, kFormat},
      {"a piece without a score", {{"model", unigram(json::array({json::array({"a"})}))}}, "model.vocab.0", {"1 values"}, kFormat},
      {"a score that is text", {{"model", unigram(json::array({{"a", "1"}}))}}, "model.vocab.0.1", {"a string"}, kFormat},
      {"an unk_id beyond the vocabulary",
       {{"model", with(unigram(json::array({{"a", 0}})), "unk_id", 1)}},
       "model.unk_id",
       {"is 1", "a number below 1"},
       kFormat},
      {"a long piece", {{"model", unigram(json::array({{long_token, 0}}))}}, "model.vocab.0.0", {"1025"}},
      {"a long token of BPE", {{"model", with(kBpe, "vocab", {{long_token, 0}})}}, "model.vocab", {"1025"}},
      {"a long suffix of BPE", {{"model", with(kBpe, "end_of_word_suffix", std::string(17, 's'))}}, "model.end_of_word_suffix", {"17"}},
      {"WordLevel without unk_token", {{"model", with(kWordLevel, "unk_token", nullptr)}}, "model.unk_token", {"missing"}, kFormat},
      {"an expression to replace",
       {{"normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"content", ""}}}},
       "normalizer.pattern.Regex",
       {"(a+)+$", "published"}},
      {"an expression to split at", {{"pre_tokenizer", split_by({{"Regex", ".*"}})}}, "pre_tokenizer.pattern.Regex", {".*"}},
      {"a replacement of many characters", {{"normalizer", replace("a", long_text)}}, "normalizer.content", {"257"}},
      {"many characters to look for", {{"normalizer", replace(long_text, "a")}}, "normalizer.pattern.String", {"257"}},
      {"many characters to split at", {{"pre_tokenizer", split_by({{"String", long_text}})}}, "pre_tokenizer.pattern.String", {"257"}},
      {"many characters to put first", {{"normalizer", {{"type", "Prepend"}, {"prepend", long_text}}}}, "normalizer.prepend", {"257"}},
      {"a character map that puts in many", {{"normalizer", rule_for_a(long_text)}}, "normalizer.precompiled_charsmap", {"257"}},
      {"a character map that is no base64", {{"normalizer", charsmap("!")}}, "normalizer.precompiled_charsmap", {"no character map"}, kFormat},
      {"an empty character map", {{"normalizer", charsmap("")}}, "normalizer.precompiled_charsmap", {"no character map"}, kFormat},
      {"a character map that is too short", {{"normalizer", charsmap("AAEAAAA=")}}, "normalizer.precompiled_charsmap", {"no character map"}, kFormat},
      {"a character map whose text is not UTF-8",
       {{"normalizer", charsmap("BAAAAAAAAAD/")}},
       "normalizer.precompiled_charsmap",
       {"no character map"},
       kFormat},
      {"megabytes of a character map", {{"normalizer", charsmap(std::string((1 << 22) + 1, 'A'))}}, "normalizer.precompiled_charsmap", {"4194305"}},
      {"more normalizers than any file has", {{"normalizer", times(64, {{"type", "Nmt"}})}}, "normalizer.normalizers.63", {"part 65"}},
      {"normalizers in a few Sequences", {{"normalizer", times(8, times(8, {{"type", "Nmt"}}))}}, "normalizer.normalizers.7", {"part 65"}},
      {"many pre-tokenizers",
       {{"pre_tokenizer", with(sequence, "pretokenizers", json::array_t(32, {{"type", "Whitespace"}}))}},
       "pre_tokenizer.pretokenizers.31",
       {"part 33"}},
      {"many post-processors",
       {{"post_processor",
         with(sequence, "processors", json::array_t(16, {{"type", "ByteLevel"}, {"trim_offsets", true}, {"add_prefix_space", true}}))}},
       "post_processor.processors.15",
       {"part 17"}},
      {"two that put tokens around",
       {{"post_processor", with(sequence, "processors", {cls_and_sep, cls_and_sep})}},
       "post_processor.processors.1",
       {"second"}},
      {"an unknown behavior",
       {{"pre_tokenizer", {{"type", "Punctuation"}, {"behavior", "Doubled"}}}},
       "pre_tokenizer.behavior",
       {"Doubled", "Isolated"}},
      {"a Metaspace of two characters",
       {{"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "__"}}}},
       "pre_tokenizer.replacement",
       {"one character"},
       kFormat},
      {"an unknown scheme",
       {{"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}}},
       "pre_tokenizer.prepend_scheme",
       {"last", "always"}},
      {"pieces of no characters", {{"pre_tokenizer", {{"type", "FixedLength"}, {"length", 0}}}}, "pre_tokenizer.length", {"at least 1"}, kFormat},
      {"a delimiter of none", {{"pre_tokenizer", {{"type", "CharDelimiterSplit"}, {"delimiter", ""}}}}, "pre_tokenizer.delimiter", {"one"}, kFormat},
      {"added tokens that normalizers make long",
       {{"normalizer", replace("#", std::string(250, 'b'))}, {"added_tokens", growing}},
       "added_tokens",
       {"once they are normalized"}},
  };
}

TEST_CASE("invalid parts of a tokenizer are refused with their name", "[io][tokenizer]") {
  made(json::object());
  made({{"model", kBpe}, {"normalizer", rule_for_a("b")}});
  for (const Refusal& refusal : refusals()) {
    INFO(refusal.what);
    check_error({refusal.code, "tokenizer.json", refusal.argument, refusal.words}, [&] { made(refusal.parts); });
  }
}

TEST_CASE("added tokens times normalizers are limited, and so are the characters of all tokens", "[io][tokenizer]") {
  std::vector<json> many;
  for (int i = 0; i < 5000; ++i) many.push_back(with(with(kAdded, "content", "t" + std::to_string(i)), "normalized", true));
  check_error({ErrorCode::unsupported, "tokenize", "tokenizer.json.added_tokens", {"needs more than ", "at most 256 per character"}},
              [&] { made({{"normalizer", times(60, {{"type", "NFKC"}})}, {"added_tokens", many}}); });
  check_error({ErrorCode::unsupported, "tokenize", "tokenizer.json.added_tokens", {"too long after normalization"}}, [&] {
    made({{"normalizer", times(40, replace("a", "aa"))}, {"added_tokens", {with(with(kAdded, "content", "a"), "normalized", true)}}});
  });
  json pieces = json::array();
  for (int i = 0; i <= 1 << 14; ++i) pieces.push_back({std::to_string(100'000 + i) + std::string(1018, 'a'), 0});
  check_error({ErrorCode::unsupported, "tokenizer.json", "the vocabulary", {"16778240", "16777216"}}, [&] { made({{"model", unigram(pieces)}}); });
}

TEST_CASE("a tokenizer with the maximum of everything is accepted", "[io][tokenizer]") {
  const std::string most256(256, 'a'), most1024(1024, 'a'), most16(16, '#');
  const json byte_level = {{"type", "ByteLevel"}, {"trim_offsets", true}, {"add_prefix_space", true}};
  for (const json& parts : std::vector<json>{
           {{"normalizer", replace(most256, most256)}},
           {{"normalizer", {{"type", "Prepend"}, {"prepend", most256}}}},
           {{"normalizer", rule_for_a(most256)}},
           {{"normalizer", times(63, {{"type", "Nmt"}})}},
           {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array_t(31, {{"type", "Whitespace"}})}}}},
           {{"pre_tokenizer", split_by({{"String", most256}})}},
           {{"post_processor", {{"type", "Sequence"}, {"processors", json::array_t(15, byte_level)}}}},
           {{"model", with(with(with(kBpe, "continuing_subword_prefix", most16), "end_of_word_suffix", most16), "merges", json::array())}},
           {{"model", unigram(json::array({{most1024, 0}}))}},
           {{"added_tokens", {with(kAdded, "content", most1024)}}, {"padding", {{"pad_token", most1024}}}},
       })
    made(parts);
}

TEST_CASE("models without a type are recognised by their members", "[io][tokenizer]") {
  const auto untyped = [](json model) {
    model.erase("type");
    return made({{"model", model}});
  };
  CHECK(tokens(untyped(kBpe), "aba") == std::vector<std::string>{"ab", "a"});
  CHECK(tokens(untyped(unigram(json::array({{"?", 0}, {"a", -1}}))), "aaz") == std::vector<std::string>{"a", "a", "z"});
}

TEST_CASE("Unigram chooses the same tokens in the floating-point environment of another library", "[io][tokenizer]") {
  // Rounded to nearest, the scores of a and b sum to that of ab; rounded upward, to more.
  const json model = unigram(json::array({{"?", 0}, {"a", 1}, {"b", 0x1p-53}, {"ab", 1}}));
  const Tokenizer tokenizer = made({{"model", model}});
  const std::vector<std::string> expected{"ab"};
  CHECK(tokens(tokenizer, "ab") == expected);
  const ForeignEnvironment environment;
  CHECK(tokens(tokenizer, "ab") == expected);
  CHECK(tokens(made({{"model", model}}), "ab") == expected);
}

TEST_CASE("an unknown token without unk_token is refused when a text contains it", "[io][tokenizer]") {
  const json no_unknown = {{"type", "Unigram"}, {"vocab", json::array({{"a", 0}})}};
  for (const auto& [path, model] : std::map<std::string, json>{{"tokenizer.json.model.unk_token", with(kWordLevel, "unk_token", "<unk>")},
                                                               {"tokenizer.json.model.unk_id", no_unknown}}) {
    const Tokenizer tokenizer = made({{"model", model}});
    CHECK(tokens(tokenizer, "a") == std::vector<std::string>{"a"});
    check_error({ErrorCode::format, "tokenize", path, {"a token of the vocabulary"}}, [&] { tokens(tokenizer, "z"); });
  }
  // BPE drops unknown characters without unk_token and merges across them.
  CHECK(tokens(made({{"model", kBpe}}), "azb") == std::vector<std::string>{"ab"});
  check_error({ErrorCode::format, "tokenize", "tokenizer.json.model.unk_token", {"\"<unk>\""}},
              [] { tokens(made({{"model", with(kBpe, "unk_token", "<unk>")}}), "z"); });
}

TEST_CASE("WordLevel does not change words", "[io][tokenizer]") {
  const json model = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"a b", 0}, {"?", 7}}}};
  const Tokenizer tokenizer = made({{"model", model}});
  CHECK(tokenizer.encode_texts(std::vector<std::string>{"a b"}).input_ids == std::vector<std::int32_t>{0});
  CHECK(tokenizer.encode_texts(std::vector<std::string>{"a"}).input_ids == std::vector<std::int32_t>{7});
  CHECK(tokens(tokenizer, "a") == std::vector<std::string>{"?"});
}

TEST_CASE("members missing in tokenizer_config.json have the defaults of the class that it names", "[io][tokenizer]") {
  const json normalizer = {
      {"type", "BertNormalizer"}, {"clean_text", false}, {"handle_chinese_chars", false}, {"strip_accents", false}, {"lowercase", false}};
  const std::string file = json{{"normalizer", normalizer}, {"model", unigram(json::array({{"?", 0}}))}}.dump();
  const auto made_by = [&](const std::string& config, std::string_view default_class) {
    const auto bytes = [](const std::string& text) { return std::vector<std::uint8_t>(text.begin(), text.end()); };
    return tokens(Tokenizer::parse(bytes(file), bytes(config), default_class), "\xc3\x89\xe4\xb8\xad").at(0);
  };
  CHECK(made_by(R"({"tokenizer_class":"BertTokenizer"})", "") == "e \xe4\xb8\xad ");
  CHECK(made_by("{}", "BertTokenizer") == "e \xe4\xb8\xad ");
  CHECK(made_by(R"({"strip_accents":false})", "BertTokenizer") == "\xc3\xa9 \xe4\xb8\xad ");
  for (const char* as_it_is : {"{}", R"({"tokenizer_class":"PreTrainedTokenizerFast","do_lower_case":true})"})
    CHECK(made_by(as_it_is, "") == "\xc3\x89\xe4\xb8\xad");
}

TEST_CASE("text after the last token that is kept is not read", "[io][tokenizer]") {
  const Tokenizer tokenizer = made({{"model", with(kWordLevel, "unk_token", "<unk>")}, {"pre_tokenizer", {{"type", "WhitespaceSplit"}}}});
  const EncodedTexts cut = tokenizer.encode_texts(std::vector<std::string>{"a b a z"}, {.max_length = 2});
  CHECK(cut.input_ids == std::vector<std::int32_t>{1, 2});
  CHECK(cut.truncated.at(0));
  CHECK_FALSE(tokenizer.encode_texts(std::vector<std::string>{"a b"}, {.max_length = 2}).truncated.at(0));
  check_error({ErrorCode::format, "tokenize", "", {}}, [&] { tokenizer.encode_texts(std::vector<std::string>{"a b a z"}, {.max_length = 4}); });
  const auto of_pair = [&](const char* first, const char* second, std::int64_t most) {
    return tokenizer.encode_texts(std::vector<std::pair<std::string, std::string>>{{first, second}}, {.max_length = most}).input_ids;
  };
  CHECK(of_pair("a b a z", "", 2) == std::vector<std::int32_t>{1, 2});
  CHECK(of_pair("b", "a a a a z", 3) == std::vector<std::int32_t>{2, 1, 1});
  // If the longer text matters, both are read completely.
  CHECK(of_pair("a a a a", "b b b b b", 3) == std::vector<std::int32_t>{1, 2, 2});
  CHECK(of_pair("a a a a a", "b b b b", 3) == std::vector<std::int32_t>{1, 1, 2});
  check_error({ErrorCode::format, "tokenize", "", {}}, [&] { of_pair("a b a z", "a a a a", 3); });
}

TEST_CASE("an added token matched after normalization is reported as its normalized text", "[io][tokenizer]") {
  const json added = with(with(kAdded, "content", "New York"), "normalized", true);
  const Tokenizer tokenizer = made({{"normalizer", {{"type", "Lowercase"}}}, {"added_tokens", {added, added, with(kAdded, "content", "")}}});
  CHECK(tokenizer.vocabulary_size() == 4);
  CHECK(tokenizer.id_to_token(3) == "new york");
  CHECK(tokenizer.token_to_id("New York") == 3);
  CHECK(tokens(tokenizer, "NEW york") == std::vector<std::string>{"new york"});
}

TEST_CASE("an unknown decoder is refused by decode, not by encode", "[io][tokenizer]") {
  const std::vector<std::int32_t> ids{1, 2, 0, 99, -1};
  const json byte_fallback = {{"type", "ByteFallback"}}, strip = {{"type", "Strip"}, {"content", "ab"}, {"start", 1}, {"stop", 0}};
  const json many = {{"type", "Sequence"}, {"decoders", json::array_t(16, byte_fallback)}};
  struct Case {
    json decoder;
    ErrorCode code;
    std::string argument;
  };
  for (const auto& [decoder, code, argument] : std::vector<Case>{
           {{{"type", "CTC"}}, ErrorCode::unsupported, "decoder.type"},
           {many, ErrorCode::unsupported, "decoder.decoders.15"},
           {strip, ErrorCode::format, "decoder.content"},
           {{{"type", "WordPiece"}, {"cleanup", true}}, ErrorCode::format, "decoder.prefix"},
           {{{"type", "Replace"}, {"pattern", {{"Regex", ".*"}}}, {"content", ""}}, ErrorCode::unsupported, "decoder.pattern.Regex"},
       }) {
    INFO(decoder);
    const Tokenizer tokenizer = made({{"decoder", decoder}});
    CHECK(tokens(tokenizer, "a") == std::vector<std::string>{"a"});
    check_error({code, "tokenizer.json", argument, {}}, [&, &of = tokenizer] { of.decode(ids); });
  }
  CHECK(made(json::object()).decode(ids) == "a b ?");
  CHECK(made({{"added_tokens", {with(with(kAdded, "content", "?"), "special", true)}}}).decode(ids, true) == "a b");
  const json doubled = {{"type", "Sequence"}, {"decoders", json::array_t(15, replace("a", "aaaaaaaa"))}};
  check_error({ErrorCode::unsupported, "tokenize", "the tokens", {"too long after normalization"}},
              [&] { made({{"decoder", doubled}}).decode(ids); });
}

TEST_CASE("tokenizer_config.json decides whether spaces before punctuation are removed, except for BPE", "[io][tokenizer]") {
  const auto decoded = [](const json& model, bool cleans) {
    const std::string file = json{{"model", model}}.dump(), config = json{{"clean_up_tokenization_spaces", cleans}}.dump();
    const std::vector<std::uint8_t> of_file(file.begin(), file.end()), of_config(config.begin(), config.end());
    return Tokenizer::parse(of_file, of_config).decode(std::vector<std::int32_t>{0, 1, 2, 3});
  };
  const json vocab = {{"I", 0}, {"'m", 1}, {"in", 2}, {"?", 3}};
  const json words = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", vocab}};
  CHECK(decoded(words, true) == "I'm in?");
  CHECK(decoded(words, false) == "I 'm in ?");
  CHECK(decoded({{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}, true) == "I 'm in ?");
}

TEST_CASE("the time for long repetitions is not quadratic", "[io][tokenizer][large]") {
  json pieces = json::array({{"?", 0}});
  json vocab = {{"?", 0}}, merges = json::array();
  std::string row = "a";
  for (int i = 1; row.size() <= 512; ++i, row += row) {
    pieces.push_back({row, -static_cast<double>(row.size())});
    vocab[row] = i;
    if (row.size() > 1) merges.push_back({row.substr(row.size() / 2), row.substr(row.size() / 2)});
  }
  pieces.push_back({std::string(1000, 'a') + "b", 0});
  const auto started = std::chrono::steady_clock::now();
  const std::string long_row(1 << 20, 'a');
  const Tokenizer bpe = made({{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}});
  CHECK(bpe.encode_texts(std::vector{long_row}).tokens.at(0).size() == (1 << 20) / 512);
  const Tokenizer unknown = made({{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}, {"unk_token", "?"}, {"fuse_unk", true}}}});
  CHECK(tokens(unknown, std::string(1 << 20, 'z')) == std::vector<std::string>{"?"});
  check_error({ErrorCode::unsupported,
               "tokenize",
               "the text",
               {"the text needs more than ", " steps for 1048576 characters, expected at most 256 per character"}},
              [&] { made({{"model", unigram(pieces)}}).encode_texts(std::vector{long_row}); });
  pieces.erase(pieces.size() - 1);
  for (const std::string each : {"\xcc\xa3\xcc\x81", " ", "!", "\xe1\x84\x80", "A",
                                 "\xe4\xb8\xad"
                                 "A",
                                 "\xc2\xa9\xe2\x80\x8d"}) {
    std::string text;
    while (text.size() < 1 << 19) text += each;
    for (const json& normalizer : {json{{"type", "NFKC"}}, rule_for_a("b")})
      made({{"normalizer", normalizer}, {"model", kBpe}}).encode_texts(std::vector{text});
  }
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::minutes(2));
}

TEST_CASE("the growth of a text by normalizers is limited", "[io][tokenizer]") {
  const Tokenizer tokenizer = made({{"normalizer", replace("a", std::string(64, 'a'))}});
  CHECK(tokens(tokenizer, std::string(1000, 'a')).size() == 1);
  check_error({ErrorCode::memory, "tokenize", "the text", {"too long after normalization"}}, [&] { tokens(tokenizer, std::string(1 << 18, 'a')); });
  const Tokenizer doubled = made({{"normalizer", times(20, replace("a", "aa"))}});
  check_error({ErrorCode::unsupported, "tokenize", "the text", {"too long after normalization"}}, [&] { tokens(doubled, "aaaaaaaa"); });
  for (const auto& [length, most] : std::map<std::size_t, std::size_t>{{10, 64 * 10 + 4096}, {1 << 20, 4 * (1 << 20) + (1 << 20)}}) {
    detail::Budget budget(length);
    budget.hold(most);
    check_error({most > 1 << 20 ? ErrorCode::memory : ErrorCode::unsupported, "tokenize", "the text", {std::to_string(most)}},
                [&, tried = most + 1] { budget.hold(tried); });
    budget.spend(256 * length + (1 << 16));
    check_error({ErrorCode::unsupported, "tokenize", "the text", {"256 per character"}}, [&] { budget.spend(1); });
  }
  set_memory_limit(std::uint64_t{1} << 21);
  check_error({ErrorCode::memory, "tokenize", "the characters of a text", {"bytes"}}, [&] { tokens(tokenizer, std::string(1000, 'a')); });
  set_memory_limit(std::uint64_t{1} << 63);
}

}  // namespace io_tokenizer_parts_test
}  // namespace attn::test
