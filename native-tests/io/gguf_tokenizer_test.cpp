#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attn/io/gguf/header.hpp"
#include "attn/io/gguf/sentencepiece.hpp"
#include "attn/io/gguf/tokenizer_files.hpp"
#include "attn/io/tokenizer.hpp"
#include "attn/models/text_model.hpp"
#include "support/matchers.hpp"
#include "support/testdata.hpp"

namespace attn::test {
namespace io_gguf_tokenizer_test {

namespace gguf = detail::gguf;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

json read_json(const char* name) { return json::parse(std::ifstream(testdata(name), std::ios::binary)); }

gguf::Metadata metadata_of(const char* name) {
  std::ifstream file(testdata(name), std::ios::binary);
  return gguf::read_header(file, std::filesystem::file_size(testdata(name))).metadata;
}

Tokenizer tokenizer_of(const gguf::Metadata& metadata) {
  const gguf::TokenizerFiles files = gguf::read_tokenizer_files(metadata);
  const auto bytes = [](const std::string& text) { return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()); };
  return Tokenizer::parse(bytes(files.tokenizer), bytes(files.tokenizer_config));
}

Ids ids_of(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode_texts(std::vector{text}, {}).input_ids;
  return {ids.begin(), ids.end()};
}

TEST_CASE("every kind of pre-tokenizer in GGUF files gives the ids of the tokenizers library", "[io][gguf][tokenizer]") {
  const json expected = read_json("gguf/tokens.json");
  const gguf::Metadata given = metadata_of("gguf/tiny-gpt2.gguf");
  CHECK(expected.size() == 4);
  for (const auto& [kind, cases] : expected.items()) {
    CAPTURE(kind);
    gguf::Metadata metadata;
    for (const char* key : {"model", "tokens", "token_type", "merges"})
      metadata.add(std::string("tokenizer.ggml.") + key, *given.find(std::string("tokenizer.ggml.") + key));
    metadata.add("tokenizer.ggml.pre", kind);
    const Tokenizer tokenizer = tokenizer_of(metadata);
    for (const json& each : cases) {
      const std::string text = each.at("text");
      CAPTURE(text);
      CHECK(ids_of(tokenizer, text) == each.at("ids").get<Ids>());
    }
  }
}

TEST_CASE("SentencePiece vocabularies in GGUF files give the ids of the sentencepiece library", "[io][gguf][tokenizer]") {
  const json cases = read_json("gguf/sentencepiece.json");
  CHECK(cases.size() > 300);
  const bool adds_space = GENERATE(true, false);
  gguf::Metadata metadata = metadata_of("gguf/sentencepiece.gguf");
  if (!adds_space) metadata.add("tokenizer.ggml.add_space_prefix", false);
  const Tokenizer tokenizer = tokenizer_of(metadata);
  for (const json& each : cases) {
    const std::string text = each.at("text");
    CAPTURE(adds_space, text);
    const auto ids = each.at(adds_space ? "ids" : "plain").get<Ids>();
    CHECK(ids_of(tokenizer, text) == ids);
    if (text.find("\u2581") == text.npos && text.find('<') == text.npos) CHECK(tokenizer.decode(std::span(ids).subspan(1)) == text);
  }
}

TEST_CASE("a GGUF file with a SentencePiece vocabulary is loaded", "[io][gguf][models]") {
  const TextModel model = TextModel::load(testdata("gguf/sentencepiece.gguf"));
  CHECK(model.task() == Task::text_generation);
  CHECK(model.generate("Hello world", {.max_new_tokens = 4}).ids.size() == 4);
}

TEST_CASE("SentencePiece vocabularies without a finite score for each token are refused", "[io][gguf][tokenizer]") {
  const auto with = [](const std::vector<double>& scores) {
    gguf::Metadata metadata;
    metadata.add("tokenizer.ggml.model", std::string("llama"));
    metadata.add("tokenizer.ggml.tokens", std::vector<std::string>{"<e>", "a", "b", "ab"});
    metadata.add("tokenizer.ggml.token_type", std::vector<double>{3, 1, 1, 1});
    metadata.add("tokenizer.ggml.bos_token_id", std::int64_t{0});
    metadata.add("tokenizer.ggml.eos_token_id", std::int64_t{0});
    if (!scores.empty()) metadata.add("tokenizer.ggml.scores", scores);
    return metadata;
  };
  // Token 0 is also the space in front, which is missing here.
  CHECK(ids_of(tokenizer_of(with({0, 0, 0, 1})), "ab") == Ids{0, 0, 3});
  const auto refused = [&](const std::vector<double>& scores) {
    try {
      gguf::read_tokenizer_files(with(scores));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::format);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refused({}) == "gguf: tokenizer.ggml.scores is missing, expected a list");
  CHECK(refused({1}) == "gguf: the length of tokenizer.ggml.scores is 1, expected 4, one for each token");
  CHECK(refused({0, NAN, 0, 0}) == "gguf: tokenizer.ggml.scores is nan, expected finite numbers");
  CHECK(refused({0, 0, INFINITY, 0}) == "gguf: tokenizer.ggml.scores is inf, expected finite numbers");
}

TEST_CASE("SentencePiece vocabularies whose merges would take too much memory are refused", "[io][gguf][tokenizer]") {
  std::vector<std::string> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(std::to_string(i) + std::string(2000, 'x'));
  const std::vector<double> types(tokens.size(), 1), scores(tokens.size(), 0);
  CHECK_THROWS_AS(gguf::merges_of_scores({.texts = tokens, .types = types}, scores), Error);
  tokens.resize(30);
  CHECK(gguf::merges_of_scores({.texts = tokens, .types = std::vector<double>(30, 1)}, std::vector<double>(30, 0)).empty());
}

}  // namespace io_gguf_tokenizer_test
}  // namespace attn::test
