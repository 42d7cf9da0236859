// Compares with Hugging Face tokenizers (testdata/tokenizers).
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "attn/io/tokenizer.hpp"
#include "attn/io/tokenizer/normalizers.hpp"
#include "attn/io/tokenizer/pre_tokenizers.hpp"
#include "attn/io/tokenizer/tokenizer_file.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace io_tokenizer_goldens_test {

using nlohmann::json;

json read_json(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> text = bytes_of(path);
  return json::parse(text.begin(), text.end());
}

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

/// UTF-16 offset to UTF-8 offset.
std::int64_t byte_of(const std::string& text, std::int64_t units) {
  std::size_t at = 0;
  for (std::int64_t seen = 0; seen < units; ++at)
    if ((static_cast<unsigned char>(text.at(at)) & 0xC0) != 0x80) seen += static_cast<unsigned char>(text[at]) >= 0xF0 ? 2 : 1;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return static_cast<std::int64_t>(at);
}

std::string text_of(const json& text) {
  if (text.is_string()) return text;
  std::string all;
  for (int i = 0; i < text.at("times"); ++i) all += text.at("repeat").get<std::string>();
  return all;
}

void check_cases(const json& cases, const Tokenizer& tokenizer) {
  for (const json& c : cases) {
    const bool is_pair = c.contains("pair");
    const std::string first = text_of(c.at("text")), second = is_pair ? text_of(c.at("pair")) : "";
    INFO(first.substr(0, 200) << " | " << second);
    TokenizeOptions options;
    if (c.contains("maxLength")) options.max_length = c.at("maxLength");
    options.add_special_tokens = c.value("addSpecialTokens", true);
    options.truncation_side = c.value("truncationSide", "right") == "left" ? Side::left : Side::right;
    const EncodedTexts encoding =
        is_pair ? tokenizer.encode_texts({std::pair(first, second)}, options) : tokenizer.encode_texts(std::vector{first}, options);
    CHECK(json(encoding.input_ids) == c.at("ids"));
    CHECK(json(encoding.token_type_ids) == c.value("typeIds", json(std::vector<int>(c.at("ids").size()))));
    CHECK(json(encoding.tokens.at(0)) == c.at("tokens"));
    CHECK(encoding.truncated.at(0) == c.value("truncated", false));
    CHECK(std::all_of(encoding.attention_mask.begin(), encoding.attention_mask.end(), [](std::uint8_t real) { return real == 1; }));
    json expected = c.at("offsets"), offsets = json::array();
    REQUIRE(encoding.offsets.at(0).size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& place = encoding.offsets[0][i];
      offsets.push_back(place ? json{place->first, place->second} : json());
      const auto sequence = encoding.sequence_ids.at(0).at(i);
      CHECK(sequence.has_value() == place.has_value());
      for (json& end : expected[i])
        if (!end.is_null()) end = byte_of(sequence == 1 ? second : first, end);
    }
    CHECK(offsets == expected);
  }
}

TEST_CASE("tokenizers of checkpoints give the ids, tokens and offsets of Hugging Face tokenizers", "[io][tokenizer]") {
  for (const char* name :
       {"tiny-bert", "tiny-distilbert", "tiny-mpnet", "tiny-roberta", "tiny-xlm-roberta", "tiny-modernbert", "tiny-deberta", "tiny-albert"}) {
    INFO(name);
    const json cases = read_json(testdata("tokenizers") / (name + std::string(".json"))).at("cases");
    CHECK(cases.size() > 90);
    check_cases(cases, Tokenizer::parse(bytes_of(testdata("models") / name / "tokenizer.json")));
  }
}

TEST_CASE("texts without special tokens, or truncated at the start, give the tokens of Hugging Face tokenizers", "[io][tokenizer]") {
  const json runs = read_json(testdata("tokenizers") / "options.json").at("runs");
  CHECK(runs.size() > 5);
  for (const json& run : runs) {
    const std::string checkpoint = run.at("checkpoint");
    INFO(checkpoint);
    check_cases(run.at("cases"), Tokenizer::parse(bytes_of(testdata("models") / checkpoint / "tokenizer.json")));
  }
}

TEST_CASE("tokens from files other than tokenizer.json, and split special tokens, agree with transformers", "[io][tokenizer]") {
  const json all = read_json(testdata("tokenizers") / "other_tokens.json");
  CHECK(all.at("runs").size() > 150);
  for (const json& run : all.at("runs")) {
    INFO(run.at("checkpoint") << ", " << run.at("what"));
    std::map<std::string, std::vector<std::uint8_t>> files;
    for (const auto& [name, value] : run.at("files").items()) files[name] = bytes(value.dump());
    const auto file = [&](const char* name) -> std::optional<std::span<const std::uint8_t>> {
      return files.contains(name) ? std::optional<std::span<const std::uint8_t>>(files.at(name)) : std::nullopt;
    };
    const Tokenizer tokenizer =
        Tokenizer::parse(bytes_of(testdata("models") / run.at("checkpoint") / "tokenizer.json"), file("tokenizer_config.json"), {},
                         {.special_tokens_map = file("special_tokens_map.json"), .added_tokens = file("added_tokens.json")});
    const EncodedTexts encoding = tokenizer.encode_texts(std::vector<std::string>{all.at("text")});
    CHECK(json(encoding.tokens.at(0)) == run.at("tokens"));
    CHECK(json(encoding.input_ids) == run.at("ids"));
    const std::vector<std::int32_t> ids = run.at("ids");
    CHECK(tokenizer.decode(ids, true) == run.at("text").get<std::string>());
    CHECK(tokenizer.vocabulary_size() == run.at("size"));
  }
}

TEST_CASE("invalid tokens in other files are refused with the file and the name", "[io][tokenizer]") {
  const std::vector<std::uint8_t> tokenizer = bytes_of(testdata("models") / "tiny-bert" / "tokenizer.json");
  const auto refused = [&](const char* file, const char* text, const std::string& path, const std::string& expected) {
    INFO(text);
    const std::vector<std::uint8_t> given = bytes(text);
    const std::string_view name = file;
    const auto config = name == "tokenizer_config.json" ? std::optional<std::span<const std::uint8_t>>(given) : std::nullopt;
    OldTokenFiles old;
    if (name == "special_tokens_map.json") old.special_tokens_map = given;
    if (name == "added_tokens.json") old.added_tokens = given;
    check_error({ErrorCode::format, file, path, {expected}}, [&] { Tokenizer::parse(tokenizer, config, {}, old); });
  };
  const char* const config = "tokenizer_config.json";
  refused(config, R"({"added_tokens_decoder":{"400":"<e2>"}})", "added_tokens_decoder.400", "an object");
  refused(config, R"({"added_tokens_decoder":{"400":{"content":"<e2>","lstrip":1}}})", "added_tokens_decoder.400.lstrip", "true or false");
  refused(config, R"({"extra_special_tokens":["<e1>",5]})", "extra_special_tokens.1.content", "a string");
  refused(config, R"({"extra_special_tokens":"<e1>"})", "extra_special_tokens", "an object");
  refused(config, R"({"split_special_tokens":"yes"})", "split_special_tokens", "true or false");
  refused("special_tokens_map.json", "[]", "the file", "an object");
  refused("added_tokens.json", R"({"<e1>":"a"})", "<e1>", "a number");
}

json json_of(const auto& values) {
  json all = json::array();
  for (const auto& each : values) all.push_back(each ? json(*each) : json());
  return all;
}

TEST_CASE("lists of words and texts padded on either side give the tokens of Hugging Face tokenizers", "[io][tokenizer]") {
  const json all = read_json(testdata("tokenizers") / "variants.json"), runs = read_json(testdata("tokenizers") / "words.json").at("runs");
  CHECK(runs.size() > 15);
  for (const json& run : runs) {
    INFO(run.value("checkpoint", run.value("variant", "")));
    json parts{{"version", "1.0"}, {"added_tokens", json::array()}, {"model", all.at("model")}};
    for (const json& variant : all.at("variants"))
      if (variant.at("name") == run.value("variant", "")) parts.update(variant.at("parts"));
    const Tokenizer tokenizer =
        Tokenizer::parse(run.contains("checkpoint") ? bytes_of(testdata("models") / run.at("checkpoint") / "tokenizer.json") : bytes(parts.dump()));
    for (const json& c : run.at("cases")) {
      INFO(c);
      TokenizeOptions options{.add_special_tokens = c.value("addSpecialTokens", true)};
      if (c.contains("maxLength")) options.max_length = c.at("maxLength");
      if (c.contains("truncationSide")) options.truncation_side = c.at("truncationSide") == "left" ? Side::left : Side::right;
      const Words first = c.at("words"), second = c.value("pair", Words());
      const EncodedTexts encoding =
          c.contains("pair") ? tokenizer.encode_word_texts({std::pair(first, second)}, options) : tokenizer.encode_word_texts({first}, options);
      CHECK(json(encoding.input_ids) == c.at("ids"));
      CHECK(json(encoding.token_type_ids) == c.value("typeIds", json(std::vector<int>(c.at("ids").size()))));
      CHECK(json(encoding.tokens.at(0)) == c.at("tokens"));
      CHECK(json_of(encoding.words.at(0)) == c.at("of"));
      CHECK(encoding.truncated.at(0) == c.value("truncated", false));
      json offsets = c.at("offsets");
      for (std::size_t i = 0; i < offsets.size(); ++i)
        for (json& end : offsets[i])
          if (!end.is_null()) end = byte_of((encoding.sequence_ids.at(0).at(i) == 1 ? second : first).at(c.at("of")[i]), end);
      CHECK(json_of(encoding.offsets.at(0)) == offsets);
    }
    for (const json& c : run.at("filled")) {
      const std::vector<std::string> texts = c.at("texts");
      const EncodedTexts encoding = tokenizer.encode_texts(texts, {.padding_side = c.at("paddingSide") == "left" ? Side::left : Side::right});
      std::vector<std::int32_t> ids, types;
      std::vector<std::uint8_t> mask;
      for (std::size_t row = 0; row < texts.size(); ++row)
        for (std::size_t i = 0; i < c.at("ids")[row].size(); ++i) {
          ids.push_back(c.at("ids")[row][i]);
          types.push_back(c.at("type_ids")[row][i]);
          mask.push_back(c.at("attention_mask")[row][i]);
          CHECK((!encoding.offsets.at(row).at(i) || mask.back() == 1));
        }
      CHECK(encoding.input_ids == ids);
      CHECK(encoding.token_type_ids == types);
      CHECK(encoding.attention_mask == mask);
      CHECK(json(encoding.tokens) == c.at("tokens"));
    }
  }
}

TEST_CASE("each kind of part alone gives the ids, tokens and offsets of Hugging Face tokenizers", "[io][tokenizer]") {
  const json file = read_json(testdata("tokenizers") / "variants.json");
  CHECK(file.at("variants").size() > 60);
  for (const json& variant : file.at("variants")) {
    INFO(variant.at("name"));
    json parts{{"version", "1.0"}, {"added_tokens", json::array()}, {"model", file.at("model")}};
    parts.update(variant.at("parts"));
    check_cases(variant.at("cases"), Tokenizer::parse(bytes(parts.dump())));
  }
}

TEST_CASE("tokenizer_config.json overrides tokenizer.json as in transformers", "[io][tokenizer]") {
  const json settings = read_json(testdata("tokenizers") / "settings.json").at("settings");
  CHECK(settings.size() == 7);
  for (const json& each : settings) {
    const std::string checkpoint = each.at("checkpoint");
    INFO(checkpoint << ", " << each.at("changes"));
    const std::vector<std::uint8_t> config = bytes(each.at("config").dump());
    check_cases(each.at("cases"), Tokenizer::parse(bytes_of(testdata("models") / checkpoint / "tokenizer.json"), config));
  }
}

TEST_CASE("MiniLM's tokenizer gives the ids, tokens and offsets of Hugging Face tokenizers", "[io][tokenizer]") {
  const std::filesystem::path file = testdata("..") / "models" / "all-MiniLM-L6-v2" / "tokenizer.json";
  if (!std::filesystem::exists(file)) {
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL("models/all-MiniLM-L6-v2 is not there");
    SUCCEED("models/all-MiniLM-L6-v2 is not there");
    return;
  }
  check_cases(read_json(testdata("tokenizers") / "all-MiniLM-L6-v2.json").at("cases"), Tokenizer::parse(bytes_of(file)));
}

TEST_CASE("the parts of a tokenizer treat every code point as Hugging Face tokenizers do", "[io][tokenizer]") {
  const json file = read_json(testdata("tokenizers") / "code_points.json");
  const char32_t chunk = file.at("chunk");
  std::vector<std::pair<char32_t, detail::Chars>> texts;
  for (const json& start : file.at("starts")) {
    std::string text;
    for (char32_t code = start; code < start.get<char32_t>() + chunk; ++code) {
      if (code >= 0xD800 && code < 0xE000) continue;
      text += 'a';
      detail::append_utf8(text, code);
      text += "a\n";
    }
    texts.emplace_back(start, detail::decode_utf8(text).value());
  }
  for (const json& sweep : file.at("sweeps")) {
    INFO(sweep.at("name"));
    const bool normalizes = sweep.contains("normalizer");
    const std::vector<std::uint8_t> section = bytes(sweep.at(normalizes ? "normalizer" : "preTokenizer").dump());
    const detail::Json tree = detail::parse_json("a part", section, section.size());
    const detail::Value value("a part", &tree);
    std::vector<std::uint32_t> digests(17, 0x811C9DC5);
    for (const auto& [start, text] : texts) {
      std::uint32_t& digest = digests[start >> 16];
      const auto fold = [&](std::size_t word) { digest = (digest ^ static_cast<std::uint32_t>(word)) * 0x01000193; };
      detail::Budget budget(text.size());
      if (normalizes) {
        for (const detail::Char& c : detail::read_normalizer(value)(text, budget)) fold(c.code);
      } else {
        detail::Pieces pieces{text, {{0, text.size()}}};
        detail::read_pre_tokenizer(value)(pieces, budget);
        for (const detail::Piece& piece : pieces.pieces) fold(piece.to - piece.from);
      }
    }
    CHECK(json(digests) == sweep.at("planes"));
  }
}

TEST_CASE("tokens are decoded to the text of Hugging Face decoders", "[io][tokenizer]") {
  const json file = read_json(testdata("tokenizers") / "decoders.json");
  CHECK(file.at("runs").size() > 15);
  for (const json& run : file.at("runs")) {
    INFO(run.value("name", run.value("checkpoint", "")));
    json parts = file.at("file");
    parts["version"] = "1.0";
    if (run.contains("decoder")) parts["decoder"] = run.at("decoder");
    const Tokenizer tokenizer =
        Tokenizer::parse(run.contains("checkpoint") ? bytes_of(testdata("models") / run.at("checkpoint") / "tokenizer.json") : bytes(parts.dump()));
    for (const json& each : run.at("cases")) {
      INFO(each);
      const std::vector<std::int32_t> ids = each[0];
      CHECK(tokenizer.decode(ids) == each[1].get<std::string>());
      CHECK(tokenizer.decode(ids, true) == each[2].get<std::string>());
    }
  }
}

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : state_(seed) {}

  std::uint32_t below(std::size_t n) {
    state_ += 0x9e3779b9U;
    std::uint32_t z = state_;
    z = (z ^ (z >> 16)) * 0x21f0aaadU;
    z = (z ^ (z >> 15)) * 0x735a2d97U;
    return static_cast<std::uint32_t>(std::uint64_t{z ^ (z >> 15)} * n >> 32);
  }
  const json& pick(const json& items) { return items[below(items.size())]; }

 private:
  std::uint32_t state_;
};

std::string drawn_text(Draw& draw, const json& file) {
  std::string text;
  for (std::uint32_t count = draw.pick(file.at("counts")); count > 0; --count) {
    const std::uint32_t kind = draw.below(10);
    if (kind < 3) {
      text += draw.pick(file.at("pieces")).get<std::string>();
    } else if (kind == 3) {
      text += ' ';
    } else {
      const json& range = draw.pick(file.at("ranges"));
      const char32_t first = range[0], last = range[1];
      detail::append_utf8(text, first + draw.below(last - first + 1));
    }
  }
  return text;
}

class Digest {
 public:
  void fold(std::size_t word) { value_ = (value_ ^ static_cast<std::uint32_t>(word)) * 0x01000193; }
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0x811C9DC5;
};

std::uint32_t digest_of(const Tokenizer& tokenizer, const json& file, std::size_t run) {
  Digest digest;
  const std::size_t texts = file.at("texts");
  for (std::size_t i = 0; i < texts; ++i) {
    Draw draw(static_cast<std::uint32_t>(file.at("seed").get<std::size_t>() + run * texts + i));
    std::string both[2] = {drawn_text(draw, file)};
    const bool is_pair = draw.below(5) == 0;
    if (is_pair) both[1] = drawn_text(draw, file);
    TokenizeOptions options;
    if (const bool is_cut = draw.below(4) == 0; is_cut) options.max_length = 8 + draw.below(8);
    EncodedTexts encoding;
    try {
      encoding = is_pair ? tokenizer.encode_texts({std::pair(both[0], both[1])}, options) : tokenizer.encode_texts(std::vector{both[0]}, options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::format);
      digest.fold(0xDEAD);
      continue;
    }
    for (std::size_t t = 0; t < encoding.input_ids.size(); ++t) {
      digest.fold(static_cast<std::size_t>(encoding.input_ids[t]));
      digest.fold(static_cast<std::size_t>(encoding.token_type_ids[t]));
      const std::u32string token = detail::code_points(encoding.tokens[0][t]);
      digest.fold(token.size());
      for (const char32_t code : token) digest.fold(code);
      if (is_pair) continue;  // the package does not report to which text an offset belongs
      const auto& place = encoding.offsets[0][t];
      const auto character = [&](std::int64_t byte) {
        return detail::count_characters(std::string_view(both[0]).substr(0, static_cast<std::size_t>(byte)));
      };
      digest.fold(place ? character(place->first) + 1 : 0);
      digest.fold(place ? character(place->second) + 1 : 0);
    }
    digest.fold(encoding.input_ids.size());
    digest.fold(encoding.truncated[0] ? 1 : 0);
  }
  return digest.value();
}

TEST_CASE("random texts give the ids, tokens and offsets of Hugging Face tokenizers for random combinations of parts", "[io][tokenizer]") {
  const json file = read_json(testdata("tokenizers") / "draws.json"), all = read_json(testdata("tokenizers") / "variants.json");
  std::map<std::string, json> variants;
  for (const json& variant : all.at("variants")) variants.emplace(variant.at("name"), variant.at("parts"));
  CHECK(file.at("runs").size() > 130);
  for (std::size_t run = 0; run < file.at("runs").size(); ++run) {
    const json& each = file.at("runs")[run];
    INFO(each);
    if (each.contains("checkpoint")) {
      const Tokenizer tokenizer = Tokenizer::parse(bytes_of(testdata("models") / each.at("checkpoint") / "tokenizer.json"));
      CHECK(digest_of(tokenizer, file, run) == each.at("digest"));
      continue;
    }
    json parts{{"version", "1.0"}, {"added_tokens", json::array()}, {"model", all.at("model")}};
    for (const std::string name : each.at("variants")) parts.update(variants.at(name));
    CHECK(digest_of(Tokenizer::parse(bytes(parts.dump())), file, run) == each.at("digest"));
  }
}

void check_early_ends(const std::vector<std::uint8_t>& tokenizer_json, const json& draws, std::uint32_t run, std::size_t& early,
                      const std::string& own = "word ") {
  const char* const fillers[] = {"ab cd ",
                                 "word ",
                                 "a b ",
                                 "x 12 34 ",
                                 "Ελλάδα και ",
                                 "и слово ",
                                 "שלום עולם ",
                                 "zz  ",
                                 "<m>  ",
                                 " yy ",
                                 "é e\u0301 ",
                                 "longlonglonglonglonglonglonglonglonglonglonglonglong",
                                 " \u0301x ",
                                 "中文的文本，没有空格。",
                                 "日本語のがぱテキスト、",
                                 "한국어 텍스트와 글자 ",
                                 "ภาษาไทยกก กขค",
                                 "学校か\u3099ﾊﾟ々〇"};
  detail::TokenizerFile file = detail::read_tokenizer_file(tokenizer_json, std::nullopt, {});
  detail::TokenizerFile whole = detail::read_tokenizer_file(tokenizer_json, std::nullopt, {});
  whole.early_end = {};
  for (std::uint32_t i = 0; i < 3; ++i) {
    Draw draw(0xea510000U + 16 * run + i);
    std::string some[5];
    for (std::string& each : some) each = fillers[draw.below(std::size(fillers))];
    some[3] = "ab cd ";
    some[4] = own;
    std::string text;
    while (text.size() < 2000) text += draw.below(6) == 0 ? drawn_text(draw, draws) : some[draw.below(5)];
    const std::size_t most = draw.below(20);
    for (const Side cut : {Side::right, Side::left}) {
      INFO(text << ", " << most << (cut == Side::left ? " from the end" : " from the start"));
      const std::vector<detail::Token> got = file.tokenize(detail::SourceText(text), 0, most, cut).tokens,
                                       expected = whole.tokenize(detail::SourceText(text), 0, std::numeric_limits<std::size_t>::max()).tokens;
      if (cut == Side::left && got.size() < expected.size()) ++early;
      const std::size_t count = std::min(most, expected.size());
      REQUIRE(got.size() >= std::min(most + 1, expected.size()));
      const std::size_t at = cut == Side::left ? got.size() - count : 0, in_all = cut == Side::left ? expected.size() - count : 0;
      bool same = true;
      for (std::size_t k = 0; k < count; ++k) {
        const detail::Token &a = got[at + k], &b = expected[in_all + k];
        same = same && a.id == b.id && a.start == b.start && a.end == b.end && a.content == b.content;
      }
      CHECK(same);
    }
  }
}

TEST_CASE("the truncated rest of a long text is skipped only if the result is the same", "[io][tokenizer]") {
  const json draws = read_json(testdata("tokenizers") / "draws.json"), all = read_json(testdata("tokenizers") / "variants.json");
  json files = json::array();
  for (const json& variant : all.at("variants")) files.push_back(variant.at("parts"));
  const json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}}, white{{"type", "WhitespaceSplit"}};
  for (const char* scheme : {"always", "first"})
    for (const bool split : {true, false}) {
      const json metaspace{{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}};
      for (const json& other : {white, byte_level})
        for (const json& list : {json::array({metaspace, other}), json::array({other, metaspace})})
          files.push_back({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", list}}}});
      for (const char* content : {"▁", " ", "x", ""})
        for (const json& each : {metaspace, white, byte_level})
          files.push_back({{"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", content}}}, {"pre_tokenizer", each}});
    }
  for (const char* content : {"a b", "b▁a", "zz", " yy", "<m>"})
    for (const bool normalized : {false, true}) {
      const json token{{"id", 0},
                       {"content", content},
                       {"lstrip", false},
                       {"rstrip", content[0] != ' '},
                       {"special", true},
                       {"normalized", normalized},
                       {"single_word", content[0] == ' '}};
      for (const json& each : {white, byte_level}) files.push_back({{"pre_tokenizer", each}, {"added_tokens", json::array({token})}});
    }
  for (const char* behavior : {"Isolated", "Removed", "MergedWithNext", "MergedWithPrevious"})
    files.push_back({{"pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "\\s+"}}}, {"behavior", behavior}, {"invert", false}}}});
  std::size_t early = 0;
  std::uint32_t run = 0;
  for (const char* name : {"tiny-bert", "tiny-distilbert", "tiny-mpnet", "tiny-roberta", "tiny-xlm-roberta", "tiny-modernbert"}) {
    INFO(name);
    check_early_ends(bytes_of(testdata("models") / name / "tokenizer.json"), draws, run++, early);
    CHECK(early > 0);
  }
  for (const json& part : files) {
    INFO(part);
    json parts{{"version", "1.0"}, {"added_tokens", json::array()}, {"model", all.at("model")}};
    parts.update(part);
    // Reading may stop at an added token.
    const bool has_own = part.contains("added_tokens") && !part.at("added_tokens").empty();
    const std::string own = has_own ? part.at("added_tokens")[0].at("content").get<std::string>() + " ab " : "word ";
    check_early_ends(bytes(parts.dump()), draws, run++, early, own);
  }
  CHECK(early > 150);
  // Short pieces, whose scores make many segmentations almost equal.
  const json metaspace{{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  for (int i = 0; i < 24; ++i) {
    Draw draw(0xea520000U + static_cast<std::uint32_t>(i));
    json vocab = json::array({json::array({"<unk>", 0}), json::array({"▁", -3})});
    const std::vector<std::string> letters{"中", "文", "か", "が", "ก", "ข", "한"};
    const auto add = [&](const std::string& piece, double length) { vocab.push_back({piece, -1 - length - draw.below(400) / 100.0}); };
    for (const std::string& a : letters) {
      if (draw.below(9) > 0) add(a, 1);
      for (const std::string& b : letters) {
        if (draw.below(2) > 0) add(a + b, 2);
        for (const std::string& c : letters)
          if (draw.below(4) == 0) add(a + b + c, 3);
      }
    }
    const json parts{{"version", "1.0"},
                     {"added_tokens", json::array()},
                     {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}},
                     {"pre_tokenizer", i % 2 == 0 ? metaspace : json()}};
    INFO(i);
    check_early_ends(bytes(parts.dump()), draws, run++, early, letters[draw.below(7)] + letters[draw.below(7)] + letters[draw.below(7)]);
  }
  const Tokenizer bert = Tokenizer::parse(bytes_of(testdata("models") / "tiny-bert" / "tokenizer.json"));
  std::string text;
  while (text.size() < 4000) text += "ab cd ";
  CHECK(bert.encode_texts(std::vector{text}, {.max_length = 8}).truncated.at(0));
  CHECK_THROWS_AS(bert.encode_texts(std::vector{text + "\xff"}, {.max_length = 8}), Error);
}

TEST_CASE("truncation takes the same number of steps whatever text follows, also in scripts without spaces", "[io][tokenizer]") {
  const std::map<std::string, std::string> sentences{{"Chinese", "我们今天去学校学习，然后回家吃饭。天气很好，大家都很高兴。"},
                                                     {"Japanese", "今日は学校で日本語を勉強して、家に帰りました。天気がよくて、みんな喜んでいます。"},
                                                     {"Korean", "오늘 우리는 학교에서 공부하고 집으로 돌아왔습니다. 날씨가 좋아서 모두 기뻐합니다. "},
                                                     {"Thai", "วันนี้พวกเราไปเรียนหนังสือที่โรงเรียน แล้วกลับบ้านไปกินข้าว อากาศดีมาก ทุกคนมีความสุข "}};
  json vocab = json::array({json::array({"<unk>", 0}), json::array({"▁", -3})});
  std::set<std::u32string> known;
  double score = -2;
  for (const auto& [language, sentence] : sentences) {
    const std::u32string codes = detail::code_points(sentence);
    for (std::size_t i = 0; i + 2 < codes.size(); ++i)
      for (const std::size_t length : {1, 2})
        if (const std::u32string piece = codes.substr(i, length); known.insert(piece).second) {
          std::string text;
          for (const char32_t code : piece) detail::append_utf8(text, code);
          vocab.push_back({text, score -= 0.01});
        }
  }
  const json unigram{{"version", "1.0"},
                     {"added_tokens", json::array()},
                     {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}},
                     {"normalizer", {{"type", "NFKC"}}},
                     {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}}};
  std::map<std::string, std::vector<std::uint8_t>> files{{"Unigram", bytes(unigram.dump())}};
  for (const char* name : {"tiny-bert", "tiny-mpnet", "tiny-roberta", "tiny-modernbert"})
    files.emplace(name, bytes_of(testdata("models") / name / "tokenizer.json"));
  for (const auto& [name, json_file] : files) {
    const detail::TokenizerFile file = detail::read_tokenizer_file(json_file, std::nullopt, {});
    for (const auto& [language, sentence] : sentences) {
      INFO(name << ", " << language);
      const auto steps = [&](std::size_t bytes) {
        std::string text;
        while (text.size() < bytes) text += sentence;
        const detail::TextTokens made = file.tokenize(detail::SourceText(text), 0, 256);
        CHECK(made.tokens.size() > 256);
        return made.budget.steps();
      };
      CHECK(steps(400'000) == steps(100'000));
    }
  }
}

}  // namespace io_tokenizer_goldens_test
}  // namespace attn::test
