#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "attn/models/text_model.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_text_names_test {

TextModel model_of(const std::string& name) { return TextModel::load(testdata("models/" + name).string()); }

TEST_CASE("an error about a single text does not number it", "[models][tasks]") {
  const TextModel masked = model_of("tiny-bert-mlm"), answering = model_of("tiny-bert-qa");
  check_error({ErrorCode::argument, "fill_mask", "text", {"fill_mask: text has no [MASK], expected at least one. Insert [MASK]"}},
              [&] { masked.fill_mask("good"); });
  check_error({ErrorCode::argument, "tokenize", "text", {"UTF-8"}}, [&] { masked.fill_mask("\xff"); });
  check_error({ErrorCode::argument, "tokenize", "question or context", {"UTF-8"}}, [&] { answering.answer("who", "\xff"); });
  check_error({ErrorCode::argument, "tokenize", "text", {"UTF-8"}}, [&] { model_of("tiny-bert").attribute("\xff"); });
}

TEST_CASE("an error about one of several texts numbers it", "[models][tasks]") {
  const TextModel masked = model_of("tiny-bert-mlm"), answering = model_of("tiny-bert-qa");
  check_error({ErrorCode::argument, "fill_mask", "text 1", {"text 1 has no [MASK]"}}, [&] { masked.fill_mask_all({"[MASK]", "good"}); });
  check_error({ErrorCode::argument, "tokenize", "text 1", {"UTF-8"}}, [&] { answering.answer_all({{"who", "I"}, {"who", "\xff"}}); });
}

TEST_CASE("fine_tune names the example whose text is wrong", "[models][fine_tuning]") {
  TextModel model = model_of("tiny-bert");
  const std::vector<FineTuneExample> examples{{"a", std::int64_t{0}}, {"\xff", std::int64_t{1}}};
  check_error({ErrorCode::argument, "tokenize", "examples[1]", {"UTF-8"}}, [&] { model.fine_tune(examples); });
  try {
    model.fine_tune(examples);
  } catch (const Error& error) {
    CHECK(std::get<double>(error.detail().at("index")) == 1);
  }
}

TEST_CASE("loading the path of a file names the folder to give instead", "[models]") {
  const std::filesystem::path folder = testdata("models/tiny-bert");
  for (const char* name : {"model.safetensors", "config.json"}) {
    const std::string path = (folder / name).string();
    check_error({ErrorCode::format, "TextModel::load", path, {"is a file, expected a folder. Give its folder, " + folder.string() + "."}},
                [&] { TextModel::load(path); });
  }
}

TEST_CASE("tasks report which texts were truncated", "[models][tasks]") {
  using Flags = std::vector<bool>;
  std::string many;
  for (int i = 0; i < 100; ++i) many += "good ";
  const std::vector<std::string> texts{"good", many, "", many};
  const Flags expected{false, true, false, true};
  Flags truncated(9, true);
  const TextModel bert = model_of("tiny-bert"), entities = model_of("tiny-bert-ner");
  bert.embed(texts, {.batch_size = 1, .truncated = &truncated});
  CHECK(truncated == expected);
  truncated.clear();
  bert.classify(texts, {.truncated = &truncated});
  CHECK(truncated == expected);
  truncated.clear();
  entities.classify_tokens(texts, {.truncated = &truncated});
  CHECK(truncated == expected);
  entities.classify_tokens(texts, {.stride = 4, .truncated = &truncated});
  CHECK(truncated == Flags(4, false));
  bert.classify_pairs({{"good", many}, {"good", "good"}}, {.truncated = &truncated});
  CHECK(truncated == Flags{true, false});
  bert.embed({}, {.truncated = &truncated});
  CHECK(truncated.empty());
}

TEST_CASE("rank reports which documents were truncated", "[models][tasks]") {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "good ";
  TextModel model = model_of("tiny-bert-cls");
  model.fine_tune({{"good", 1.0}, {"bad", 0.0}}, {.epochs = 1, .labels = {"relevant"}});
  std::vector<bool> truncated;
  const auto ranked = model.rank("good", {"bad", many, "It was good"}, {.truncated = &truncated});
  CHECK(truncated == std::vector<bool>{false, true, false});
  REQUIRE(ranked.size() == 3);
  for (const RankedDocument& document : ranked) CHECK(document.truncated == (document.index == 1));
}

}  // namespace models_text_names_test
}  // namespace attn::test
