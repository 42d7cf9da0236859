#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "attn/attn.hpp"
#include "attn/models/attribution.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_gradients_test {

using nlohmann::json;

TextModel stock(const std::string& name, TextModelOptions options = {}) { return TextModel::load(testdata("models/" + name), options); }

Encoding encoding_of(const GoldenCase& golden) {
  Encoding encoding;
  const auto copy = [&](const char* name, auto& to) {
    const Array from = golden.tensor(name);
    to = std::remove_cvref_t<decltype(to)>({static_cast<std::size_t>(from.dims[0]), static_cast<std::size_t>(from.dims[1])});
    std::transform(from.data.begin(), from.data.end(), to.begin(),
                   [](float x) { return static_cast<std::remove_cvref_t<decltype(*to.begin())>>(x); });
  };
  copy("input_ids", encoding.input_ids);
  copy("attention_mask", encoding.attention_mask);
  copy("token_type_ids", encoding.token_type_ids);
  return encoding;
}

Encoding a_batch() {
  Encoding encoding;
  encoding.input_ids = {{2, 9, 10, 11, 12, 3}, {2, 20, 21, 3, 0, 0}};
  encoding.attention_mask = {{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 0, 0}};
  encoding.token_type_ids = xt::xtensor<std::int32_t, 2>({2, 6}, 0);
  return encoding;
}

GradientTarget target_of(const json& given) {
  GradientTarget target{.row = given.at("row")};
  if (given.contains("label")) target.label = given.at("label").get<std::int64_t>();
  if (given.contains("component")) target.component = given.at("component").get<std::int64_t>();
  if (given.contains("token")) target.token = given.at("token").get<std::int64_t>();
  return target;
}

const GradientTarget kLabel{.row = 1, .label = std::int64_t{1}};

struct Scores {
  std::vector<float> of_tokens;
  double delta = 0;
};
Scores attribute(const EncoderModel& model, const GoldenCase& golden, AttributionMethod method, std::int64_t steps) {
  std::vector<std::int64_t> ids, types;
  std::vector<std::uint8_t> special;
  for (const float id : golden.tensor("input_ids").data) ids.push_back(static_cast<std::int64_t>(id));
  for (const float type : golden.tensor("token_type_ids").data) types.push_back(static_cast<std::int64_t>(type));
  for (const float flag : golden.tensor("special").data) special.push_back(flag != 0);
  const detail::Attribution attribution("attribute", model,
                                        {.ids = ids,
                                         .types = types,
                                         .special = special,
                                         .pad_id = golden.option<std::int64_t>("pad", 0),
                                         .method = method,
                                         .target = golden.option<std::int64_t>("target", 0),
                                         .steps = steps});
  std::vector<double> sums(ids.size());
  std::vector<float> values(2);
  for (std::int64_t portion = 0; portion < attribution.portions(); ++portion) {
    std::vector<float> scores(ids.size()), ends(2);
    attribution.run(portion, scores.data(), ends.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(scores[i]);
    if (portion == 0) values = ends;
  }
  return {{sums.begin(), sums.end()}, detail::convergence_delta(sums, values.data())};
}

const std::map<std::string, AttributionMethod>& methods() {
  static const std::map<std::string, AttributionMethod> all = [] {
    std::map<std::string, AttributionMethod> named;
    for (std::size_t i = 0; i < kAttributionMethodNames.size(); ++i) named.emplace(kAttributionMethodNames[i], static_cast<AttributionMethod>(i));
    return named;
  }();
  return all;
}

void check_gradients(const GoldenFile& file) {
  for (const json& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    CAPTURE(golden.name());
    TextModel model = stock(golden.name());
    const GradientOptions options{.target = target_of(entry.at("options").at("target")), .embeddings = true, .attentions = true, .parameters = true};
    const auto gradients = model.gradients(encoding_of(golden), options);
    CHECK(golden.difference("value", Array({1}, gradients.value)) == "");
    CHECK(golden.difference("embeddings", floats_of(*gradients.embeddings)) == "");
    const std::set<std::string> unused = entry.value("unused", std::set<std::string>());
    std::size_t parameters = 0;
    for (const auto& [what, error] : entry.at("expected").items()) {
      CAPTURE(what);
      if (what.starts_with("attentions.")) CHECK(golden.difference(what, floats_of(gradients.attentions->at(std::stoul(what.substr(11))))) == "");
      if (!what.starts_with("parameters.")) continue;
      ++parameters;
      const std::string name = what.substr(11);
      if (unused.contains(name)) continue;
      REQUIRE(gradients.parameters->contains(name));
      CHECK(golden.difference(what, floats_of(gradients.parameters->at(name))) == "");
    }
    for (const auto& [name, values] : *gradients.parameters)
      if (!entry.at("expected").contains("parameters." + name)) {
        CAPTURE(name);
        CHECK(name.starts_with("cls."));
        CHECK(std::all_of(values.begin(), values.end(), [](float value) { return value == 0; }));
        ++parameters;
      }
    CHECK(parameters == gradients.parameters->size() + unused.size());
  }
}

TEST_CASE("gradients of every family agree with torch.autograd", "[models][gradients]") {
  check_gradients(read_golden(testdata("models/gradients.safetensors")));
}

TEST_CASE("gradients of a token's logits agree with torch.autograd", "[models][gradients]") {
  check_gradients(read_golden(testdata("models/token_gradients.safetensors")));
  check_gradients(read_golden(testdata("models/deberta_gradients.safetensors")));
}

TEST_CASE("gradients of shared layers and of gated layers without biases agree with torch.autograd", "[models][gradients]") {
  check_gradients(read_golden(testdata("models/later_gradients.safetensors")));
}

TEST_CASE("attributions of tokens agree with Captum and with the papers", "[models][attribution]") {
  const GoldenFile file = read_golden(testdata("models/attribution.safetensors"));
  std::map<std::string, std::unique_ptr<EncoderModel>> models;
  for (const json& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    const std::string checkpoint = entry.at("checkpoint");
    auto& model = models[checkpoint];
    if (!model) model = load(read_checkpoint(testdata("models/" + checkpoint)));
    for (const auto& [what, error] : entry.at("expected").items()) {
      CAPTURE(golden.name(), what);
      const bool is_short = what == "integrated_gradients_8";
      const Scores scores = attribute(*model, golden, is_short ? AttributionMethod::integrated_gradients : methods().at(what), is_short ? 8 : 50);
      CHECK(difference(golden, what, Array({static_cast<std::int64_t>(scores.of_tokens.size())}, scores.of_tokens)) == "");
      // delta = |sum - change| / |change|: an error of sum shifts it by 1 / change of itself, one of change by delta /
      // change.
      if (is_short) {
        const double change = std::abs(entry.at("value").get<double>() - entry.at("baseline").get<double>());
        const auto delta = entry.at("delta_8").get<double>();
        CHECK(std::abs(scores.delta - delta) < 2e-5 * (1 + delta) / change);
      }
    }
  }
}

TEST_CASE("explaining a text gives the result of explaining its ids", "[models][attribution]") {
  const GoldenFile file = read_golden(testdata("models/attribution.safetensors"));
  std::size_t count = 0;
  for (const json& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    const std::string checkpoint = entry.at("checkpoint");
    if (checkpoint != "tiny-bert" && checkpoint != "tiny-distilbert" && checkpoint != "tiny-mpnet" && checkpoint != "sentiment") continue;
    CAPTURE(golden.name());
    const TextModel model = stock(checkpoint);
    const auto encoder = load(read_checkpoint(testdata("models/" + checkpoint)));
    const auto target = golden.option<std::int64_t>("target", 0), answer = golden.option<std::int64_t>("answer", 0);
    for (const auto& [name, method] : methods()) {
      CAPTURE(name);
      AttributeOptions options{.method = method};
      if (target != answer) options.target = model.labels().at(static_cast<std::size_t>(target));
      const TextAttribution got = model.attribute(entry.at("text"), options);
      CHECK(got.tokens == entry.at("tokens").get<std::vector<std::string>>());
      CHECK(got.offsets.size() == got.tokens.size());
      CHECK(got.scores == attribute(*encoder, golden, method, 50).of_tokens);
      CHECK(got.delta.has_value() == (method == AttributionMethod::integrated_gradients));
      ++count;
    }
  }
  CHECK(count >= 40);
}

TEST_CASE("explaining the logit of a token: a decoder's next token, a mask, a label", "[models][attribution]") {
  struct Case {
    std::string checkpoint, text;
    std::variant<std::int64_t, std::string> target, contrast;
    std::optional<std::int64_t> position = std::nullopt;
  };
  const std::vector<Case> cases{{"tiny-gpt2", "The old man went home", "a", "e"},
                                {"tiny-qwen3", "The old man went home", 7, 9, 1},
                                {"tiny-gemma-2", "The old man went", 7, 9},
                                {"tiny-distilbert-mlm", "she [MASK] good", 6, 5, 3},
                                {"tiny-bert-ner", "she is good", 1, 0, 2}};
  for (const auto& [checkpoint, text, target, contrast, position] : cases) {
    CAPTURE(checkpoint);
    TextModel model = stock(checkpoint);
    const Encoding batch = model.tokenize({text});
    const std::vector<std::int32_t> ids(batch.input_ids.begin(), batch.input_ids.end());
    const auto L = static_cast<std::int64_t>(ids.size()), at = position.value_or(L - 1);
    const auto logits_at = [&](const std::vector<std::int32_t>& of, std::int64_t place) {
      Encoding encoding;
      encoding.input_ids = xt::xtensor<std::int32_t, 2>({1, of.size()});
      std::copy(of.begin(), of.end(), encoding.input_ids.begin());
      encoding.attention_mask = xt::xtensor<std::uint8_t, 2>({1, of.size()}, 1);
      encoding.token_type_ids = xt::xtensor<std::int32_t, 2>({1, of.size()}, 0);
      const auto logits = *model.forward(encoding).logits;
      const auto C = logits.shape()[2];
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(place) * C);
      return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(C));
    };
    const auto id_of = [&](const std::variant<std::int64_t, std::string>& given) {
      const std::string* const name = std::get_if<std::string>(&given);
      return static_cast<std::size_t>(name != nullptr ? *model.token_to_id(*name) : std::get<std::int64_t>(given));
    };
    const auto value = [&](const std::vector<std::int32_t>& of, std::int64_t place) {
      const std::vector<float> logits = logits_at(of, place);
      return static_cast<double>(logits.at(id_of(target))) - static_cast<double>(logits.at(id_of(contrast)));
    };
    AttributeOptions options{.method = AttributionMethod::leave_one_out, .target = target, .contrast = contrast, .position = position};
    const TextAttribution left = model.attribute(text, options);
    const double whole = value(ids, at);
    for (std::int64_t i = 0; i < L; ++i) {
      CAPTURE(i);
      std::vector<std::int32_t> others = ids;
      others.erase(others.begin() + i);
      const bool stays = i == at || !left.offsets[static_cast<std::size_t>(i)];
      const double expected = stays ? 0 : whole - value(others, i < at ? at - 1 : at);
      CHECK(std::abs(static_cast<double>(left.scores[static_cast<std::size_t>(i)]) - expected) < 1e-5);
    }
    // Integrated gradients sum to f's change from padding; only a mask stays.
    options.method = AttributionMethod::integrated_gradients;
    options.steps = 300;
    std::vector<std::int32_t> padding = ids;
    for (std::int64_t i = 0; i < L; ++i)
      if (const auto place = static_cast<std::size_t>(i); left.offsets[place] && !(i == at && checkpoint == "tiny-distilbert-mlm"))
        padding[place] = 0;
    const TextAttribution along = model.attribute(text, options);
    CHECK(std::abs(std::accumulate(along.scores.begin(), along.scores.end(), 0.0) - (whole - value(padding, at))) < 1e-5);
    // All weight comes from visible tokens.
    options.method = AttributionMethod::attention_rollout;
    const TextAttribution flow = model.attribute(text, options);
    CHECK(std::abs(std::accumulate(flow.scores.begin(), flow.scores.end(), 0.0) - 1) < 1e-5);
    options = {.method = AttributionMethod::gradient_x_input, .position = position};
    const TextAttribution likeliest = model.attribute(text, options);
    const std::vector<float> logits = logits_at(ids, at);
    options.target = std::max_element(logits.begin(), logits.end()) - logits.begin();
    CHECK(model.attribute(text, options).scores == likeliest.scores);
    options.position = L;
    CHECK_THROWS_AS(model.attribute(text, options), Error);
    options.position = -1;
    CHECK_THROWS_AS(model.attribute(text, options), Error);
  }
  const TextModel classifier = stock("tiny-bert");
  CHECK_THROWS_AS(classifier.attribute("she is good", {.target = 0, .position = 1}), Error);
  const TextModel pooled = stock("tiny-bert-mlm");
  CHECK_THROWS_AS(pooled.attribute("she is good", {.target = 0, .contrast = 1}), Error);
  CHECK_THROWS_AS(stock("tiny-gpt2").attribute("", {}), Error);
}

TEST_CASE("integrated gradients of the sentiment model sum to the change of the answer", "[models][attribution][sentiment]") {
  const TextModel model = stock("sentiment");
  const std::vector<std::uint8_t> bytes = bytes_of(testdata("sentiment/films.json"));
  const json films = json::parse(bytes.begin(), bytes.end());
  std::vector<double> deltas;
  for (std::size_t i = 0; i < 60; ++i) {
    deltas.push_back(*model.attribute(films.at("texts").at(i * 7).at("text")).delta);
  }
  std::sort(deltas.begin(), deltas.end());
  std::printf("the sentiment model: convergence delta of %zu films: median %.2g, most %.2g\n", deltas.size(), deltas[deltas.size() / 2],
              deltas.back());
  CHECK(deltas[deltas.size() / 2] < 0.01);
}

TEST_CASE("gradients of a model have the same bits for any number of threads and any requested results", "[models][gradients][threads]") {
  TextModel model = stock("tiny-mpnet");
  const Encoding batch = a_batch();
  const GradientOptions everything{.target = kLabel, .embeddings = true, .attentions = true, .parameters = true};
  const auto alone = model.gradients(batch, everything);
  for (const unsigned threads : {2U, 3U}) {
    set_num_threads(threads);
    const auto more = model.gradients(batch, everything);
    set_num_threads(1);
    CHECK(more.value == alone.value);
    CHECK_THAT(floats_of(*more.embeddings), HasBitsOf(floats_of(*alone.embeddings)));
    for (std::size_t layer = 0; layer < alone.attentions->size(); ++layer)
      CHECK_THAT(floats_of(more.attentions->at(layer)), HasBitsOf(floats_of(alone.attentions->at(layer))));
    for (const auto& [name, gradient] : *alone.parameters) CHECK_THAT(floats_of(more.parameters->at(name)), HasBitsOf(floats_of(gradient)));
  }
  const auto one = model.gradients(batch, {.target = kLabel, .embeddings = true});
  CHECK_FALSE((one.attentions || one.parameters));
  CHECK_THAT(floats_of(*one.embeddings), HasBitsOf(floats_of(*alone.embeddings)));
}

TEST_CASE("rows other than the target, and padding, have no gradient", "[models][gradients]") {
  TextModel model = stock("tiny-bert");
  const Array embeddings = floats_of(*model.gradients(a_batch(), {.target = kLabel, .embeddings = true}).embeddings);
  const std::size_t width = static_cast<std::size_t>(embeddings.dims[2]);
  for (std::size_t place = 0; place < 12; ++place) {
    bool any = false;
    for (std::size_t e = 0; e < width; ++e) any = any || embeddings.data[place * width + e] != 0;
    CAPTURE(place);
    CHECK(any == (place >= 6 && place < 10));
  }
}

TEST_CASE("a label can be given by name, and invalid targets are refused", "[models][gradients][errors]") {
  TextModel model = stock("tiny-bert"), plain = stock("tiny-bert-cls");
  const Encoding batch = a_batch();
  const auto by = [&](GradientTarget target) { return model.gradients(batch, {.target = std::move(target), .embeddings = true}); };
  CHECK(by({.row = 1, .label = model.labels()[1]}).value == by(kLabel).value);
  check_error({ErrorCode::out_of_range, "gradients", "target.label", {}}, [&] { by({.label = "cheerful"}); });
  check_error({ErrorCode::out_of_range, "gradients", "target.label", {}}, [&] { by({.label = std::int64_t{3}}); });
  check_error({ErrorCode::out_of_range, "gradients", "target.label", {}}, [&] { by({.label = std::int64_t{-1}}); });
  check_error({ErrorCode::out_of_range, "gradients", "target.component", {}}, [&] { by({.component = 32}); });
  check_error({ErrorCode::out_of_range, "gradients", "target.row", {}}, [&] { by({.row = 2, .label = std::int64_t{0}}); });
  check_error({ErrorCode::out_of_range, "gradients", "target.row", {}}, [&] { by({.row = -1, .label = std::int64_t{0}}); });
  check_error({ErrorCode::argument, "gradients", "target", {}}, [&] { by({}); });
  check_error({ErrorCode::argument, "gradients", "target", {}}, [&] { by({.label = std::int64_t{0}, .component = 0}); });
  check_error({ErrorCode::argument, "gradients", "the list of gradients", {"is empty"}}, [&] { model.gradients(batch, {.target = kLabel}); });
  check_error({ErrorCode::unsupported, "gradients", "target.label", {}}, [&] { plain.gradients(batch, {.target = kLabel, .embeddings = true}); });
  CHECK(by({.row = 1, .component = 3}).value != 0);

  check_error({ErrorCode::out_of_range, "attribute", "target", {}}, [&] { model.attribute("good", {.target = "cheerful"}); });
  check_error({ErrorCode::out_of_range, "attribute", "target", {}}, [&] { model.attribute("good", {.target = std::int64_t{7}}); });
  check_error({ErrorCode::config, "attribute", "steps", {}}, [&] { model.attribute("good", {.steps = 0}); });
  check_error({ErrorCode::config, "attribute", "steps", {}}, [&] { model.attribute("good", {.steps = 10'001}); });
  check_error({ErrorCode::argument, "attribute", "target", {}}, [&] { plain.attribute("good"); });
  CHECK(plain.attribute("good", {.method = AttributionMethod::attention_rollout}).scores.size() == 3);
  CHECK(plain.attribute("good", {.target = std::int64_t{31}}).scores.size() == 3);
  CHECK(model.attribute("").scores.size() == 2);
  CHECK(*model.attribute("").delta == 0);
}

TEST_CASE("int8 models report how to get gradients, and support attributions that need none", "[models][attribution][int8]") {
  TextModel model = stock("tiny-bert", {.weights = Weights::int8});
  check_error({ErrorCode::unsupported, "gradients", "the model", {"weights float32"}},
              [&] { model.gradients(a_batch(), {.target = kLabel, .embeddings = true}); });
  for (const auto& [name, method] : methods()) {
    CAPTURE(name);
    if (name == "leave_one_out" || name == "attention_rollout") {
      const TextAttribution got = model.attribute("It was good", {.method = method}), same = model.attribute("It was good", {.method = method});
      CHECK(got.scores == same.scores);
      double size = 0;
      for (const float score : got.scores) size += std::abs(static_cast<double>(score));
      CHECK(size > 0.01);
    } else {
      check_error({ErrorCode::unsupported, "attribute", "the model", {"weights float32"}},
                  [&] { model.attribute("It was good", {.method = method}); });
    }
  }
}

TEST_CASE("rows of attention rollout sum to 1", "[models][attribution]") {
  for (const char* name : {"tiny-bert", "tiny-mpnet-mean", "sentiment"}) {
    CAPTURE(name);
    double sum = 0;
    for (const float score : stock(name).attribute("The film was not bad", {.method = AttributionMethod::attention_rollout}).scores)
      sum += static_cast<double>(score);
    CHECK(std::abs(sum - 1) < 1e-5);
  }
}

TEST_CASE("nodes and weights of the integral are those of Gauss-Legendre quadrature", "[models][attribution]") {
  for (const std::int64_t n : {1, 2, 3, 8, 50, 301}) {
    CAPTURE(n);
    const detail::Quadrature quadrature(n);
    for (const std::int64_t degree : {std::int64_t{0}, std::int64_t{1}, n, 2 * n - 1}) {
      double sum = 0;
      for (std::size_t i = 0; i < quadrature.places.size(); ++i)
        sum += quadrature.weights[i] * std::pow(quadrature.places[i], static_cast<double>(degree));
      CHECK(std::abs(sum * static_cast<double>(degree + 1) - 1) < 1e-12 * static_cast<double>(n));
    }
    CHECK(std::is_sorted(quadrature.places.begin(), quadrature.places.end()));
  }
}

}  // namespace models_gradients_test
}  // namespace attn::test
