#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "attn/models/text_model.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

using namespace attn;
using namespace attn::test;
using nlohmann::json;

namespace models_tasks_test {

json cases_of_task(const std::string& name) {
  const std::vector<std::uint8_t> bytes = bytes_of(testdata("tasks/" + name + ".json"));
  return json::parse(bytes.begin(), bytes.end()).at("cases");
}

const TextModel& model_of(const std::string& name) {
  static std::map<std::string, TextModel> models;
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  // Pipelines compute in float32.
  return models.emplace(name, TextModel::load(testdata("models/" + name).string(), {.weights = Weights::float32})).first->second;
}

std::int64_t byte_of(const std::string& text, std::int64_t place) {
  std::size_t at = 0;
  for (; place > 0; --place) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return static_cast<std::int64_t>(at);
}

bool is_near(float got, double expected) { return std::abs(static_cast<double>(got) - expected) <= 1e-5; }

}  // namespace models_tasks_test
using namespace models_tasks_test;

TEST_CASE("entities agree with transformers' pipeline", "[models][tasks]") {
  std::size_t count = 0;
  for (const json& each : cases_of_task("entities")) {
    const std::string text = each.at("text");
    const json& given = each.at("options");
    CAPTURE(text, given.dump());
    ClassifyTokensOptions options;
    const std::string aggregation = given.at("aggregation");
    options.aggregation =
        static_cast<Aggregation>(std::find(kAggregationNames.begin(), kAggregationNames.end(), aggregation) - kAggregationNames.begin());
    if (given.contains("stride")) options.stride = given.at("stride").get<std::int64_t>();
    if (given.contains("ignoreLabels")) options.ignore_labels = given.at("ignoreLabels").get<std::vector<std::string>>();
    const std::vector<Entity> got = model_of(each.at("model")).classify_tokens({text}, options).at(0);
    const json& expected = each.at("expected");
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].label == expected[i][0].get<std::string>());
      CHECK(is_near(got[i].score, expected[i][1]));
      CHECK(got[i].start == byte_of(text, expected[i][2]));
      CHECK(got[i].end == byte_of(text, expected[i][3]));
      CHECK(got[i].text == text.substr(static_cast<std::size_t>(got[i].start), static_cast<std::size_t>(got[i].end - got[i].start)));
      ++count;
    }
  }
  CHECK(count > 2000);
}

TEST_CASE("filled masks agree with transformers' pipeline", "[models][tasks]") {
  for (const json& each : cases_of_task("masks")) {
    const std::string text = each.at("text");
    const json& given = each.at("options");
    CAPTURE(text, given.dump());
    const FillMaskOptions options{.top_k = given.value("topK", std::int64_t{5}), .targets = given.value("targets", std::vector<std::string>())};
    const auto got = model_of(each.at("model")).fill_mask(text, options);
    const json& expected = each.at("expected");
    REQUIRE(got.size() == expected.size());
    for (std::size_t mask = 0; mask < got.size(); ++mask) {
      REQUIRE(got[mask].size() == expected[mask].size());
      for (std::size_t i = 0; i < got[mask].size(); ++i) {
        const FilledMask& filled = got[mask][i];
        CHECK(filled.token == expected[mask][i][0].get<std::string>());
        CHECK(filled.id == expected[mask][i][1]);
        CHECK(is_near(filled.score, expected[mask][i][2]));
        CHECK(filled.text == expected[mask][i][3].get<std::string>());
      }
    }
  }
}

TEST_CASE("answers agree with transformers' pipeline", "[models][tasks]") {
  for (const json& each : cases_of_task("answers")) {
    const std::string context = each.at("context");
    const json& given = each.at("options");
    CAPTURE(context, given.dump());
    AnswerOptions options{.top_k = given.value("topK", std::int64_t{1}),
                          .max_answer_length = given.value("maxAnswerLength", std::int64_t{15}),
                          .allow_empty = given.value("allowEmpty", false)};
    if (given.contains("stride")) options.stride = given.at("stride").get<std::int64_t>();
    const std::vector<Answer> got = model_of(each.at("model")).answer(each.at("question"), context, options);
    std::vector<json> expected;  // the pipeline fills up with answers of score 0
    for (const json& row : each.at("expected"))
      if (row[1] > 0) expected.push_back(row);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].text == expected[i][0].get<std::string>());
      CHECK(is_near(got[i].score, expected[i][1]));
      CHECK(got[i].start == byte_of(context, expected[i][2]));
      CHECK(got[i].end == byte_of(context, expected[i][3]));
    }
  }
}

TEST_CASE("ids are decoded to the texts of transformers", "[models][tasks]") {
  for (const json& each : cases_of_task("decoded")) {
    CAPTURE(each.dump());
    const std::vector<std::int64_t> ids = each.at("ids");
    const TextModel& model = model_of(each.at("model"));
    CHECK(model.decode(ids) == each.at("expected")[0].get<std::string>());
    CHECK(model.decode(ids, true) == each.at("expected")[1].get<std::string>());
  }
  CHECK(model_of("tiny-bert").decode({-1, 1 << 30}) == "");
}

TEST_CASE("documents are ranked by the scores of their pairs", "[models][tasks]") {
  TextModel model = TextModel::load(testdata("models/tiny-bert-cls").string());
  model.fine_tune({{.text = "It was good", .label = 1.0}, {.text = "It was bad", .label = 0.0}}, {.epochs = 1, .labels = {"relevant"}, .seed = 5});
  REQUIRE(model.task() == Task::text_classification);
  const std::vector<std::string> documents{"It was bad.", "The film was good!", "", "A happy person smiles at the child in the garden."};
  const auto ranked = model.rank("Was it good?", documents, {.batch_size = 2});
  REQUIRE(ranked.size() == documents.size());
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const auto score = model.classify_pairs({{"Was it good?", documents[static_cast<std::size_t>(ranked[i].index)]}}).at(0).at(0).score;
    CHECK(ranked[i].score == score);
    if (i > 0) CHECK(ranked[i].score <= ranked[i - 1].score);
  }
  CHECK(model.rank("Was it good?", documents, {.top_k = 2}).size() == 2);
  CHECK(model.rank("Was it good?", {}).empty());
}

TEST_CASE("rank prepends a prompt to the query", "[models][tasks]") {
  TextModel model = TextModel::load(testdata("models/tiny-bert-cls").string());
  model.fine_tune({{.text = "It was good", .label = 1.0}, {.text = "It was bad", .label = 0.0}}, {.epochs = 1, .labels = {"relevant"}, .seed = 5});
  const std::vector<std::string> documents{"It was bad.", "The film was good!"};
  const auto expected = model.rank("happy film: Was it good?", documents), got = model.rank("Was it good?", documents, {.prompt = "happy film: "}),
             without = model.rank("Was it good?", documents);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(got[i].score == expected[i].score);
    CHECK(got[i].score != without[i].score);
  }
  try {
    model.rank("a", documents, {.prompt_name = "none"});
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::config);
    CHECK_THAT(std::string(error.what()), Catch::Matchers::StartsWith("rank: prompt_name"));
  }
}

TEST_CASE("tasks on several texts give the results of each text and report each batch", "[models][tasks]") {
  const TextModel &mlm = model_of("tiny-bert-mlm"), &qa = model_of("tiny-bert-qa"), &bert = model_of("tiny-bert");
  CHECK(mlm.mask_token() == "[MASK]");
  CHECK(model_of("tiny-roberta-mlm").mask_token() == "<mask>");
  std::vector<std::int64_t> done;
  const auto on_progress = [&](std::int64_t now, std::int64_t) { done.push_back(now); };
  const std::vector<std::string> texts{"It is [MASK].", "[MASK] film was [MASK] [PAD] at all.", "A [MASK] [PAD]"};
  const auto filled = mlm.fill_mask_all(texts, {.top_k = 3, .batch_size = 2, .on_progress = on_progress});
  CHECK(done == std::vector<std::int64_t>{2, 3});
  REQUIRE(filled.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto alone = mlm.fill_mask(texts[i], {.top_k = 3});
    REQUIRE(alone.size() == filled[i].size());
    for (std::size_t mask = 0; mask < alone.size(); ++mask)
      for (std::size_t k = 0; k < 3; ++k) {
        CHECK(alone[mask][k].id == filled[i][mask][k].id);
        CHECK(alone[mask][k].score == filled[i][mask][k].score);
        CHECK(filled[i][mask][k].text.find("[PAD]") == std::string::npos);
      }
  }
  std::string many;
  for (int i = 0; i < 30; ++i) many += "The film was good. ";
  const std::vector<std::pair<std::string, std::string>> pairs{{"Who smiles?", "A happy person smiles."}, {"What was good?", many}};
  done.clear();
  const auto answers = qa.answer_all(pairs, {.top_k = 2, .batch_size = 1, .on_progress = on_progress});
  CHECK(done.size() > 2);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto alone = qa.answer(pairs[i].first, pairs[i].second, {.top_k = 2});
    REQUIRE(alone.size() == answers[i].size());
    for (std::size_t k = 0; k < alone.size(); ++k) CHECK((alone[k].text == answers[i][k].text && alone[k].score == answers[i][k].score));
  }
  CHECK(qa.answer("What was good?", many, {.max_length = 32}).at(0).score != answers[1].at(0).score);
  CHECK(mlm.fill_mask_all({}).empty());
  CHECK(qa.answer_all({}).empty());
  const auto all = bert.classify({"It was good"}), best = bert.classify({"It was good"}, {.top_k = 2});
  REQUIRE(best[0].size() == 2);
  CHECK(best[0][1].label == all[0][1].label);
  CHECK(bert.classify({"It was good"}, {.add_special_tokens = false})[0][0].score != all[0][0].score);
}

TEST_CASE("invalid arguments of tasks are refused, and the model stays usable", "[models][tasks]") {
  const TextModel &ner = model_of("tiny-bert-ner"), &mlm = model_of("tiny-bert-mlm"), &qa = model_of("tiny-bert-qa"), &bert = model_of("tiny-bert");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "good ";
  const auto throws = [](ErrorCode code, const std::string& argument, const std::vector<std::string>& words, const auto& call) {
    CAPTURE(argument);
    try {
      call();
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == code);
      for (const std::string& word : words) CHECK_THAT(std::string(error.what()), Catch::Matchers::ContainsSubstring(word));
    }
  };
  throws(ErrorCode::unsupported, "task", {"text-classification", "token-classification"}, [&] { bert.classify_tokens({"a"}); });
  throws(ErrorCode::unsupported, "task", {"fill-mask"}, [&] { ner.fill_mask("[MASK]"); });
  throws(ErrorCode::unsupported, "task", {"question-answering"}, [&] { ner.answer("a", "b"); });
  throws(ErrorCode::unsupported, "task", {"3 labels", "one label"}, [&] { bert.rank("a", {"b"}); });
  throws(ErrorCode::unsupported, "task", {"text-classification"}, [&] { mlm.classify({"a"}); });
  for (const std::string& text : {many, std::string("a")})
    throws(ErrorCode::config, "stride", {"below 62"}, [&] { ner.classify_tokens({text}, {.stride = 62}); });
  throws(ErrorCode::config, "stride", {"none"}, [&] { ner.classify_tokens({"a"}, {.aggregation = Aggregation::none, .stride = 1}); });
  throws(ErrorCode::config, "stride", {"at least 0"}, [&] { ner.classify_tokens({"a"}, {.stride = -1}); });
  throws(ErrorCode::config, "batch_size", {"at least 1"}, [&] { ner.classify_tokens({"a"}, {.batch_size = 0}); });
  throws(ErrorCode::out_of_range, "text 1", {"64"}, [&] { ner.classify_tokens({"a", many}, {.truncation = false}); });
  throws(ErrorCode::out_of_range, "max_length", {"64"}, [&] { ner.classify_tokens({"a"}, {.max_length = 65}); });
  throws(ErrorCode::argument, "text", {"UTF-8"}, [&] { ner.classify_tokens({"\xff"}); });
  throws(ErrorCode::argument, "text", {"mask"}, [&] { mlm.fill_mask("good"); });
  throws(ErrorCode::out_of_range, "text", {"64"}, [&] { mlm.fill_mask(many + "[MASK]"); });
  throws(ErrorCode::argument, "targets[1]", {"targets[1]"}, [&] { mlm.fill_mask("[MASK]", {.targets = {"good", ""}}); });
  throws(ErrorCode::argument, "targets[0]", {"targets[0]"}, [&] { mlm.fill_mask("[MASK]", {.targets = {"☃"}}); });
  throws(ErrorCode::config, "top_k", {"top_k"}, [&] { mlm.fill_mask("[MASK]", {.top_k = 0}); });
  throws(ErrorCode::config, "top_k", {"top_k"}, [&] { bert.classify({"a"}, {.top_k = 0}); });
  throws(ErrorCode::out_of_range, "max_length", {"64"}, [&] { qa.answer("a", "b", {.max_length = 65}); });
  throws(ErrorCode::config, "batch_size", {"at least 1"}, [&] { mlm.fill_mask("[MASK]", {.batch_size = 0}); });
  throws(ErrorCode::argument, "question", {"question"}, [&] { qa.answer("", "a"); });
  throws(ErrorCode::argument, "context", {"context"}, [&] { qa.answer("a", ""); });
  throws(ErrorCode::out_of_range, "max_length", {"room"}, [&] { qa.answer(many, "a"); });
  throws(ErrorCode::config, "stride", {"below 60"}, [&] { qa.answer("a", many, {.stride = 60}); });
  CHECK(qa.answer("a", " \n ").empty());
  CHECK(qa.answer("a", " \n ", {.allow_empty = true}).at(0).text.empty());
  CHECK(ner.classify_tokens({}).empty());
  CHECK(ner.classify_tokens({""}).at(0).empty());
}

TEST_CASE("logits can be omitted", "[models][tasks]") {
  const TextModel& model = model_of("tiny-bert-mlm");
  const Encoding encoding = model.tokenize({"It is [MASK].", "A"});
  const TextModelOutput whole = model.forward(encoding), without = model.forward(encoding, {.output_logits = false});
  REQUIRE(whole.logits.has_value());
  CHECK(whole.logits->dimension() == 3);
  CHECK_FALSE(without.logits.has_value());
  CHECK_THAT(floats_of(without.last_hidden_state), HasBitsOf(floats_of(whole.last_hidden_state)));
}

TEST_CASE("entities have the same bits in any batch", "[models][tasks]") {
  const TextModel& model = model_of("tiny-bert-ner");
  const std::vector<std::string> texts{"A happy person", "", "The film was not bad, it was good!", std::string(90, 'a'), "Überraschend schön 😀"};
  const auto expected = model.classify_tokens(texts, {.stride = 3});
  for (const std::int64_t batch_size : {1, 2, 4}) {
    const auto got = model.classify_tokens(texts, {.stride = 3, .batch_size = batch_size});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      REQUIRE(got[i].size() == expected[i].size());
      for (std::size_t j = 0; j < got[i].size(); ++j) CHECK((got[i][j].score == expected[i][j].score && got[i][j].start == expected[i][j].start));
    }
  }
}
