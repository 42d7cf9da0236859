#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <filesystem>
#include <set>

#include "attn/io/safetensors.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_state_test {

std::filesystem::path folder_of(const std::string& name) { return testdata("models/" + name); }

Encoding some_tokens() {
  constexpr std::size_t kB = 2, kL = 40;
  Encoding encoding;
  encoding.input_ids = xt::xtensor<std::int32_t, 2>({kB, kL});
  for (std::size_t i = 0; i < kB * kL; ++i) encoding.input_ids.data()[i] = static_cast<std::int32_t>(5 + i * 31 % 270);
  return encoding;
}

Array answer(const TextModel& model) {
  const TextModelOutput output = model.forward(some_tokens());
  Array all = floats_of(output.last_hidden_state);
  if (output.logits) all.data.insert(all.data.end(), output.logits->begin(), output.logits->end());
  return {Shape{std::ssize(all.data)}, all.data};
}

void check_same(const StateDict& got, const StateDict& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, values] : expected) {
    CAPTURE(name);
    CHECK_THAT(floats_of(got.at(name)), HasBitsOf(floats_of(values)));
  }
}

TEST_CASE("a model's state has the names and the numbers of its file, in float32", "[models]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  const TextModel model = TextModel::load(folder_of(name));
  const StateDict file = read_safetensors(folder_of(name) / "model.safetensors"), state = model.state_dict();
  const std::map<std::string, Shape> shapes = model.parameter_shapes();
  REQUIRE(shapes.size() == state.size());
  for (const auto& [key, values] : state) {
    CAPTURE(key);
    REQUIRE(file.contains(key));
    CHECK_THAT(floats_of(values), HasBitsOf(floats_of(file.at(key))));
    CHECK(shapes.at(key) == to_shape(file.at(key).shape()));
    CHECK_THAT(floats_of(model.get_parameter(key)), HasBitsOf(floats_of(values)));
  }
  // Not in the state: an unused pooler, other training heads, the second name of a bias.
  for (const auto& [key, values] : file)
    if (!state.contains(key))
      CHECK((key.starts_with("cls.seq_relationship.") || key.find("pooler.") != std::string::npos || key == "lm_head.bias" ||
             key == "lm_head.decoder.bias"));
}

TEST_CASE("loading a model's own state changes no bit, and every tensor of it matters", "[models]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  TextModel model = TextModel::load(folder_of(name));
  const StateDict state = model.state_dict();
  const Array expected = answer(model);
  model.load_state_dict(state);
  CHECK_THAT(answer(model), HasBitsOf(expected));
  for (const auto& [key, values] : state) {
    CAPTURE(key);
    AnyTensor changed = values;
    for (std::size_t i = 0; i < changed.size(); ++i) changed.data()[i] += 0.25F * static_cast<float>(1 + i % 3);
    model.load_state_dict({{key, changed}}, false);
    CHECK_THAT(floats_of(model.get_parameter(key)), HasBitsOf(floats_of(changed)));
    CHECK(answer(model).data != expected.data);
    StateDict others = model.state_dict();
    others[key] = values;
    check_same(others, state);
    model.load_state_dict({{key, values}}, false);
  }
  CHECK_THAT(answer(model), HasBitsOf(expected));
}

TEST_CASE("one number of a fused tensor is one number of the model", "[models]") {
  TextModel model = TextModel::load(folder_of("tiny-modernbert"));
  const Array expected = answer(model);
  StateDict state = model.state_dict();
  for (const char* key : {"model.layers.1.attn.Wqkv.weight", "model.layers.1.mlp.Wi.weight"})
    for (const std::size_t row : {1U, 40U, 90U}) {
      CAPTURE(key, row);
      float& number = state.at(key).data()[row * 32 + 5];
      const float before = std::exchange(number, number + 1);
      model.load_state_dict(state);
      check_same(model.state_dict(), state);
      CHECK(answer(model).data != expected.data);
      number = before;
    }
  model.load_state_dict(state);
  CHECK_THAT(answer(model), HasBitsOf(expected));
}

TEST_CASE("the embedding matrix is updated when a state is loaded", "[models]") {
  TextModel model = TextModel::load(folder_of("tiny-bert"));
  const Embedding& words = model.word_embeddings();
  const std::string key = "bert.embeddings.word_embeddings.weight";
  AnyTensor table = model.get_parameter(key);
  REQUIRE(words.nearest(20, 1).at(0).similarity < 0.9F);
  for (std::size_t e = 0; e < 32; ++e) table(30, e) = 100 * table(20, e);
  model.load_state_dict({{key, table}}, false);
  CHECK(words.nearest(20, 1).at(0).id == 30);
  CHECK(std::abs(words.similarity(20, 30) - 1) < 1e-6F);
  CHECK(words.row(30) == std::vector<float>(&table(30, 0), &table(30, 0) + 32));
}

TEST_CASE("a state that does not fit changes nothing, and one error lists all mismatches", "[models]") {
  TextModel model = TextModel::load(folder_of("tiny-bert"));
  const StateDict state = model.state_dict();
  const auto check = [&](const StateDict& wrong, bool strict, const std::vector<std::string>& missing, const std::vector<std::string>& unexpected,
                         const std::vector<std::string>& mis_shaped) {
    std::vector<std::string> words = missing;
    words.insert(words.end(), unexpected.begin(), unexpected.end());
    for (const std::string& each : mis_shaped) words.push_back(each + " has shape");
    check_error({ErrorCode::mismatch, "load_state_dict", "state", words}, [&] { model.load_state_dict(wrong, strict); });
    try {
      model.load_state_dict(wrong, strict);
    } catch (const Error& error) {
      const auto count = [&](const char* list) { return std::get<std::vector<std::string>>(error.detail().at(list)).size(); };
      CHECK(count("missing") == missing.size());
      CHECK(count("unexpected") == unexpected.size());
      CHECK(count("mis_shaped") == mis_shaped.size());
    }
    check_same(model.state_dict(), state);
  };
  StateDict wrong = state;
  for (auto& [name, values] : wrong) values *= 2;
  const std::string first = wrong.begin()->first, last = wrong.rbegin()->first;
  wrong.erase(last);
  wrong.emplace("bert.pooler.weight", detail::empty_any({2}));
  wrong.at("classifier.bias") = detail::empty_any({4});
  check(wrong, true, {last}, {"bert.pooler.weight"}, {"classifier.bias"});
  check(wrong, false, {}, {}, {"classifier.bias"});
  check({}, true,
        [&] {
          std::vector<std::string> names;
          for (const auto& [name, values] : state) names.push_back(name);
          return names;
        }(),
        {}, {});
  wrong.at("classifier.bias") = state.at("classifier.bias");
  model.load_state_dict(wrong, false);
  StateDict now = model.state_dict();
  CHECK_THAT(floats_of(now.at(first)), HasBitsOf(floats_of(wrong.at(first))));
  CHECK_THAT(floats_of(now.at(last)), HasBitsOf(floats_of(state.at(last))));
  model.load_state_dict({}, false);
  check_same(model.state_dict(), now);
  for (const char* name : {"", "classifier", "encoder.layers.0.linear1.weight"})
    check_error({ErrorCode::out_of_range, "get_parameter", "name", {"parameter_shapes", name}},
                [&] { static_cast<void>(model.get_parameter(name)); });
}

}  // namespace models_state_test
}  // namespace attn::test
