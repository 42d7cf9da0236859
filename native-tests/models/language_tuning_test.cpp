#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_language_tuning_test {

using State = std::map<std::string, AnyTensor>;

TextModel stock(const std::string& name, TextModelOptions options = {}) { return TextModel::load(testdata("models/" + name), options); }

State state_of(const TextModel& model) {
  const auto state = model.state_dict();
  return {state.begin(), state.end()};
}

std::set<std::string> changed(const State& before, const State& after) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : before)
    if (after.at(name) != tensor) names.insert(name);
  return names;
}

double first_loss(TextModel& model, const std::vector<FineTuneExample>& examples, std::int64_t batch_size = 16) {
  std::optional<double> loss;
  const auto stop = [&](const FineTuneProgress& at) {
    loss = at.loss;
    return false;
  };
  model.fine_tune(examples, {.batch_size = batch_size, .learning_rate = 1e-9, .on_progress = stop});
  return loss.value();
}

TEST_CASE("the loss of texts is the mean negative log probability of their tokens", "[models][training]") {
  const std::string prompt = "the cat", text = " sat on the mat and slept", other = "once upon a time";
  for (const char* name : {"tiny-llama", "tiny-qwen3", "tiny-gemma-2", "tiny-neox-serial"}) {
    CAPTURE(name);
    TextModel model = stock(name);
    // Tokens that end after byte `from` of `whole`.
    const auto negative = [&](const std::string& whole, std::size_t from) {
      std::vector<double> values;
      const ScoredText scored = model.score_tokens(whole);
      const TokenOffsets offsets = model.tokenize(std::vector{whole}).offsets[0];
      for (std::size_t i = 1; i < scored.tokens.size(); ++i)
        if (offsets[i]->second > static_cast<std::int64_t>(from)) values.push_back(-scored.tokens[i].log_probability.value());
      return values;
    };
    std::vector<double> all = negative(prompt + text, prompt.size());
    const std::vector<double> more = negative(other, 0);
    const auto mean = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) sum += value;
      return sum / static_cast<double>(values.size());
    };
    CHECK(std::abs(first_loss(model, {{.text = text, .prompt = prompt}}) - mean(all)) < 1e-5);
    CHECK(std::abs(first_loss(model, {{.text = other}}) - mean(more)) < 1e-5);
    all.insert(all.end(), more.begin(), more.end());
    CHECK(std::abs(first_loss(model, {{.text = other}, {.text = text, .prompt = prompt}}) - mean(all)) < 1e-5);
  }
}

TEST_CASE("a language model learns texts, and its files keep them", "[models][training]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("attn-tuned-" + std::to_string(std::random_device()()));
  const std::vector<FineTuneExample> examples{{.text = " four", .prompt = "two and two is"}, {.text = "the cat sat on the mat"}};
  for (const char* name : {"tiny-gpt2", "tiny-llama", "tiny-gemma-3"}) {
    CAPTURE(name);
    TextModel model = stock(name);
    const State before = state_of(model);
    const FineTuneResult result = model.fine_tune(examples, {.epochs = 150, .batch_size = 2, .learning_rate = 1e-2});
    CHECK(result.loss < 0.3);
    CHECK_FALSE(result.validation_accuracy);
    CHECK(model.generate("two and two is", {.max_new_tokens = 5}).text.starts_with(" four"));
    CHECK(changed(before, state_of(model)).size() == before.size());
    model.save_pretrained(folder);
    const TextModel again = TextModel::load(folder);
    CHECK(again.task() == Task::text_generation);
    CHECK(again.generate("two and two is", {.max_new_tokens = 5}).ids == model.generate("two and two is", {.max_new_tokens = 5}).ids);
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("only the last layers of a language model are trained if asked", "[models][training]") {
  for (const char* name : {"tiny-gpt2", "tiny-llama", "tiny-neox"}) {
    CAPTURE(name);
    const bool is_tied = std::string(name) == "tiny-gpt2";
    TextModel model = stock(name);
    const State before = state_of(model);
    model.fine_tune({{.text = "the cat sat on the mat"}}, {.epochs = 2, .layers = 1});
    for (const std::string& each : changed(before, state_of(model))) {
      CAPTURE(each);
      const bool is_head = each.find("lm_head") != std::string::npos || each.find("embed_out") != std::string::npos;
      const bool is_final_norm =
          each.find("ln_f") != std::string::npos || each == "model.norm.weight" || each.find("final_layer_norm") != std::string::npos;
      CHECK((each.find(".1.") != std::string::npos || is_final_norm || (is_head && !is_tied)));
    }
    TextModel head = stock(name);
    if (is_tied) {
      check_error({ErrorCode::out_of_range, "fine_tune", "layers", {"shares the word embeddings"}},
                  [&] { head.fine_tune({{.text = "the cat sat"}}, {.layers = 0}); });
    } else {
      head.fine_tune({{.text = "the cat sat on the mat"}}, {.epochs = 2, .layers = 0});
      CHECK(changed(before, state_of(head)).size() == 1);
    }
  }
}

TEST_CASE("a held-out text is judged by its tokens", "[models][training]") {
  TextModel model = stock("tiny-llama");
  const std::vector<FineTuneExample> examples{
      {.text = "the cat sat on the mat"}, {.text = "the cat sat on the mat"}, {.text = "the cat sat on the mat"}};
  FineTuneProgress last;
  const auto keep = [&](const FineTuneProgress& at) {
    last = at;
    return true;
  };
  const FineTuneResult result =
      model.fine_tune(examples, {.epochs = 60, .batch_size = 2, .learning_rate = 1e-2, .validation = 0.34, .on_progress = keep});
  CHECK(result.validation_accuracy == 1.0);
  CHECK(last.validation_loss.value() < 0.1);
  const ScoredText scored = model.score_tokens("the cat sat on the mat");
  double sum = 0;
  for (const ScoredToken& score : scored.tokens) sum -= score.log_probability.value_or(0);
  CHECK(std::abs(sum / static_cast<double>(scored.tokens.size() - 1) - last.validation_loss.value()) < 1e-5);
}

TEST_CASE("requests that do not fit a language model are refused and change nothing", "[models][training]") {
  TextModel model = stock("tiny-gpt2"), classifier = stock("sentiment");
  const State before = state_of(model);
  const auto check = [&](const std::string& argument, const std::vector<FineTuneExample>& examples, const FineTuneOptions& options = {}) {
    check_error({ErrorCode::argument, "fine_tune", argument, {}}, [&] { model.fine_tune(examples, options); });
    CHECK(changed(before, state_of(model)).empty());
  };
  check("examples", {});
  check("examples[0].label", {{"a text", "good"}});
  check("examples[0].label", {{"a text", std::int64_t{1}}});
  check("examples[1].text_pair", {{.text = "a text"}, {.text = "a text", .text_pair = "another"}});
  check("examples[0]", {{.text = ""}});
  check("examples[0]", {{.text = "a"}});
  check("examples[1]", {{.text = "a text"}, {.text = "", .prompt = "a prompt"}});
  check("labels", {{.text = "a text"}}, {.labels = {"good"}});
  std::string longer;
  for (int i = 0; i < 200; ++i) longer += "the ";
  check("examples[0]", {{.text = "cat", .prompt = longer}});
  check_error({ErrorCode::argument, "fine_tune", "examples[0].prompt", {}},
              [&] { classifier.fine_tune({{.text = "a", .label = "positive", .prompt = "b"}}); });
  check_error({ErrorCode::unsupported, "fine_tune", "the model", {"weights float32"}},
              [&] { stock("tiny-gpt2", {.weights = Weights::int8}).fine_tune({{.text = "a text"}}); });
}

}  // namespace models_language_tuning_test
}  // namespace attn::test
