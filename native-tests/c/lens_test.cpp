#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "attn/c.h"
#include "c/results.hpp"
#include "support/testdata.hpp"

namespace attn::test {
namespace {

template <class T>
struct Array {
  std::vector<std::int64_t> dims;
  std::vector<T> values;
};

template <class T>
Array<T> array_of(const attn_tensors* results, const std::string& name) {
  attn_tensor tensor{};
  REQUIRE(attn_tensors_get(results, name.c_str(), &tensor));
  Array<T> array{{tensor.dims, tensor.dims + tensor.rank}, {}};
  std::size_t size = 1;
  for (const std::int64_t dim : array.dims) size *= static_cast<std::size_t>(dim);
  const auto* data = static_cast<const T*>(tensor.data);
  array.values.assign(data, data + size);
  return array;
}

std::vector<float> flat(const lens::LayerTable& table) {
  std::vector<float> all;
  for (const auto& row : table) all.insert(all.end(), row.begin(), row.end());
  return all;
}

attn_text text_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

TEST_CASE("C: the lens returns what C++ returns", "[c][lens]") {
  const std::string folder = testdata("models/tiny-gpt2").string(), prompt = "The old man", other = "The odd man", a = "a", e = "e";
  const auto expected = TextModel::load(folder);
  attn_text_model* model = nullptr;
  REQUIRE(attn_text_model_load(folder.c_str(), ATTN_WEIGHTS_AS_STORED, &model, nullptr) == ATTN_OK);
  const attn_text text = text_of(prompt), corrupted = text_of(other), answer = text_of(a), contrast = text_of(e);
  attn_tensors* results = nullptr;

  SECTION("logit_lens") {
    const std::vector<std::int64_t> layers{0, 2}, positions{1};
    attn_logit_lens_options options;
    attn_logit_lens_options_init(&options);
    options.layers = layers.data();
    options.layer_count = layers.size();
    options.positions = positions.data();
    options.position_count = positions.size();
    options.top_k = 3;
    REQUIRE(attn_text_model_logit_lens(model, &text, &options, &results, nullptr) == ATTN_OK);
    const auto made = lens::logit_lens(expected, prompt, {.layers = layers, .positions = positions, .top_k = 3});
    const auto ids = array_of<std::int64_t>(results, "ids");
    CHECK(ids.dims == std::vector<std::int64_t>{2, 1, 3});
    const auto logits = array_of<float>(results, "logits"), probabilities = array_of<float>(results, "probabilities");
    for (std::size_t i = 0; i < 6; ++i) {
      const lens::LogitLensPrediction& each = made.predictions[i / 3][0][i % 3];
      CHECK(ids.values[i] == each.id);
      CHECK(logits.values[i] == each.logit);
      CHECK(probabilities.values[i] == each.probability);
      CHECK(texts_in(results, "predictions")[i] == each.token);
    }
    CHECK(array_of<std::int64_t>(results, "layers").values == layers);
    CHECK(array_of<std::int64_t>(results, "positions").values == positions);
    CHECK(texts_in(results, "tokens") == made.tokens);
    attn_tensors_free(results);
    REQUIRE(attn_text_model_logit_lens(model, &text, nullptr, &results, nullptr) == ATTN_OK);
    const auto all = lens::logit_lens(expected, prompt);
    CHECK(array_of<float>(results, "logits").dims ==
          std::vector<std::int64_t>{std::ssize(all.layers), std::ssize(all.positions), std::ssize(all.predictions[0][0])});
  }
  SECTION("logit_attribution") {
    attn_logit_attribution_options options;
    attn_logit_attribution_options_init(&options);
    options.contrast = &contrast;
    options.position = 1;
    REQUIRE(attn_text_model_logit_attribution(model, &text, &answer, &options, &results, nullptr) == ATTN_OK);
    const auto made = lens::logit_attribution(expected, prompt, {.target = a, .contrast = e, .position = 1});
    CHECK(array_of<float>(results, "value").values[0] == static_cast<float>(made.value));
    CHECK(array_of<float>(results, "embedding").values[0] == static_cast<float>(made.embedding));
    CHECK(array_of<float>(results, "biases").values[0] == static_cast<float>(made.biases));
    CHECK(array_of<float>(results, "heads").values == flat(made.heads));
    CHECK(array_of<float>(results, "heads").dims == std::vector<std::int64_t>{2, 4});
    CHECK(array_of<float>(results, "mlps").values == made.mlps);
    CHECK(array_of<std::int64_t>(results, "position").values[0] == 1);
    CHECK(texts_in(results, "tokens") == made.tokens);
    attn_tensors_free(results);
    REQUIRE(attn_text_model_logit_attribution(model, &text, &answer, nullptr, &results, nullptr) == ATTN_OK);
    CHECK(array_of<float>(results, "value").values[0] == static_cast<float>(lens::logit_attribution(expected, prompt, {.target = a}).value));
  }
  SECTION("patch_activations and attribution_patching") {
    const std::vector<std::int64_t> positions{2, 1};
    attn_patch_options options;
    attn_patch_options_init(&options);
    options.contrast = &contrast;
    options.site = "mlp";
    options.position = 2;
    options.positions = positions.data();
    options.position_count = positions.size();
    const lens::PatchOptions same{.answer = a, .contrast = e, .site = lens::PatchSite::mlp, .position = 2, .positions = positions};
    const auto check = [&](const lens::PatchResult& made) {
      CHECK(array_of<float>(results, "recovered").values == flat(made.recovered));
      CHECK(array_of<float>(results, "recovered").dims[0] == std::ssize(made.recovered));
      CHECK(array_of<std::int64_t>(results, "positions").values == made.positions);
      CHECK(array_of<float>(results, "clean").values[0] == static_cast<float>(made.clean));
      CHECK(array_of<float>(results, "corrupted").values[0] == static_cast<float>(made.corrupted));
      CHECK(texts_in(results, "clean_tokens") == made.clean_tokens);
      CHECK(texts_in(results, "corrupted_tokens") == made.corrupted_tokens);
      attn_tensors_free(results);
      results = nullptr;
    };
    REQUIRE(lens::logit_lens(expected, prompt).tokens.size() == lens::logit_lens(expected, other).tokens.size());
    REQUIRE(attn_text_model_patch_activations(model, &text, &corrupted, &answer, &options, &results, nullptr) == ATTN_OK);
    check(lens::patch_activations(expected, prompt, other, same));
    REQUIRE(attn_text_model_attribution_patching(model, &text, &corrupted, &answer, &options, &results, nullptr) == ATTN_OK);
    check(lens::attribution_patching(expected, prompt, other, same));
    attn_patch_options_init(&options);
    options.site = "head";
    REQUIRE(attn_text_model_patch_activations(model, &text, &corrupted, &answer, &options, &results, nullptr) == ATTN_OK);
    check(lens::patch_activations(expected, prompt, other, {.answer = a, .site = lens::PatchSite::head}));
    REQUIRE(attn_text_model_patch_activations(model, &text, &corrupted, &answer, nullptr, &results, nullptr) == ATTN_OK);
    check(lens::patch_activations(expected, prompt, other, {.answer = a}));
  }
  SECTION("head_scores") {
    const char* kinds[] = {"induction", "first_token"};
    attn_head_scores_options options;
    attn_head_scores_options_init(&options);
    options.kinds = kinds;
    options.kind_count = 2;
    options.seed = 7;
    REQUIRE(attn_text_model_head_scores(model, &options, &results, nullptr) == ATTN_OK);
    const auto made = lens::head_scores(expected, {.kinds = {lens::HeadKind::induction, lens::HeadKind::first_token}, .seed = 7});
    for (const auto& [kind, table] : made.scores) CHECK(array_of<float>(results, "scores." + std::string(name_of(kind))).values == flat(table));
    CHECK(made.scores.size() == 2);
    attn_tensor none{};
    CHECK_FALSE(attn_tensors_get(results, "scores.previous_token", &none));
    CHECK(array_of<std::int64_t>(results, "ids").values == made.ids);
    CHECK(texts_in(results, "tokens") == made.tokens);
    attn_tensors_free(results);
    attn_head_scores_options_init(&options);
    options.text = &text;
    options.kinds = kinds + 1;
    options.kind_count = 1;
    REQUIRE(attn_text_model_head_scores(model, &options, &results, nullptr) == ATTN_OK);
    CHECK(texts_in(results, "tokens") == lens::head_scores(expected, {.kinds = {lens::HeadKind::first_token}, .text = prompt}).tokens);
  }
  attn_tensors_free(results);
  attn_text_model_free(model);
}

TEST_CASE("C: the lens refuses bad options, missing texts and encoders", "[c][lens]") {
  const std::string folder = testdata("models/tiny-gpt2").string(), encoder = testdata("models/tiny-bert").string();
  attn_text_model *model = nullptr, *bert = nullptr;
  REQUIRE(attn_text_model_load(folder.c_str(), ATTN_WEIGHTS_AS_STORED, &model, nullptr) == ATTN_OK);
  REQUIRE(attn_text_model_load(encoder.c_str(), ATTN_WEIGHTS_AS_STORED, &bert, nullptr) == ATTN_OK);
  const attn_text text{"The", 3}, longer{"The old man", 11}, answer{"a", 1};
  attn_tensors* results = nullptr;
  attn_logit_lens_options of_lens;
  attn_logit_lens_options_init(&of_lens);
  of_lens.top_k = 0;
  CHECK(attn_text_model_logit_lens(model, &text, &of_lens, &results, nullptr) == ATTN_ERROR_CONFIG);
  attn_logit_lens_options_init(&of_lens);
  const std::int64_t beyond = 99;
  of_lens.layers = &beyond;
  of_lens.layer_count = 1;
  CHECK(attn_text_model_logit_lens(model, &text, &of_lens, &results, nullptr) == ATTN_ERROR_OUT_OF_RANGE);
  of_lens.size = 8;
  CHECK(attn_text_model_logit_lens(model, &text, &of_lens, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_logit_lens(model, nullptr, nullptr, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_logit_lens(nullptr, &text, nullptr, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_logit_attribution(model, &text, nullptr, nullptr, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_logit_attribution(bert, &text, &answer, nullptr, &results, nullptr) == ATTN_ERROR_UNSUPPORTED);
  attn_patch_options of_patch;
  attn_patch_options_init(&of_patch);
  of_patch.site = "heads";
  CHECK(attn_text_model_patch_activations(model, &text, &text, &answer, &of_patch, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_patch_activations(model, &text, &longer, &answer, nullptr, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_attribution_patching(model, &text, &text, nullptr, nullptr, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  const char* wrong = "sideways";
  attn_head_scores_options of_heads;
  attn_head_scores_options_init(&of_heads);
  of_heads.kinds = &wrong;
  of_heads.kind_count = 1;
  CHECK(attn_text_model_head_scores(model, &of_heads, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(results == nullptr);
  attn_text_model_free(model);
  attn_text_model_free(bert);
}

}  // namespace attn::test
