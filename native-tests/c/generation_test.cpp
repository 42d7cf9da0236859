#include <catch2/catch_test_macros.hpp>
#include <cmath>
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
std::vector<T> numbers_in(const attn_tensors* results, const char* name) {
  attn_tensor tensor{};
  REQUIRE(attn_tensors_get(results, name, &tensor));
  REQUIRE(tensor.rank == 1);
  const auto* data = static_cast<const T*>(tensor.data);
  return {data, data + tensor.dims[0]};
}

/// `most`: tokens before on_token ends the text.
struct TokensSeen {
  std::size_t most;
  std::vector<std::int64_t> ids = {};
  std::string text = {};
};

bool record_token(const attn_generated_token* token, void* user_data) {
  auto& heard = *static_cast<TokensSeen*>(user_data);
  heard.ids.push_back(token->id);
  heard.text.append(token->text.data, token->text.size);
  return token->probability > 0 && heard.ids.size() < heard.most;
}

}  // namespace

TEST_CASE("C: generate, next_token and score_tokens return what C++ returns, and on_token can end the text", "[c][tasks]") {
  const std::string folder = testdata("models/tiny-gpt2").string(), prompt = "The old man";
  const auto expected = TextModel::load(folder);
  attn_text_model* model = nullptr;
  REQUIRE(attn_text_model_load(folder.c_str(), ATTN_WEIGHTS_AS_STORED, &model, nullptr) == ATTN_OK);
  const attn_text text{prompt.data(), prompt.size()};
  attn_tensors* results = nullptr;
  const auto check_generated = [&](const attn_generate_options* options, const GeneratedText& made) {
    REQUIRE(attn_text_model_generate(model, &text, options, &results, nullptr) == ATTN_OK);
    CHECK(numbers_in<std::int64_t>(results, "ids") == made.ids);
    CHECK(texts_in(results, "text") == std::vector{made.text});
    CHECK(texts_in(results, "tokens") == made.tokens);
    CHECK(texts_in(results, "finish_reason") == std::vector{std::string(kFinishReasonNames[static_cast<std::size_t>(made.finish_reason)])});
    attn_tensors_free(results);
  };
  check_generated(nullptr, expected.generate(prompt));

  attn_generate_options options;
  attn_generate_options_init(&options);
  options.do_sample = true;
  options.max_new_tokens = 20;
  options.temperature = 0.8;
  options.top_k = 50;
  options.top_p = 0.9;
  options.min_p = 0.001;
  options.repetition_penalty = 1.1;
  options.seed = 5;
  GenerateOptions same{.max_new_tokens = 20, .sampling = {true, 0.8, 50, 0.9, 0.001, 1.1, 5}};
  const GeneratedText drawn = expected.generate(prompt, same);
  check_generated(&options, drawn);
  REQUIRE(drawn.text.size() > 8);
  const std::string end = drawn.text.substr(4, 3);
  const attn_text stop{end.data(), end.size()};
  options.stop = &stop;
  options.stop_count = 1;
  same.stop = {end};
  check_generated(&options, expected.generate(prompt, same));

  options.stop_count = 0;
  TokensSeen heard{.most = 4};
  options.on_token = record_token;
  options.user_data = &heard;
  same.stop = {};
  std::string said;
  same.on_token = [&, count = 0](const GeneratedToken& token) mutable {
    said += token.text;
    return ++count < 4;
  };
  const GeneratedText aborted = expected.generate(prompt, same);
  REQUIRE(aborted.finish_reason == FinishReason::aborted);
  check_generated(&options, aborted);
  CHECK(heard.ids == aborted.ids);
  CHECK(heard.text == said);

  REQUIRE(attn_text_model_next_token(model, &text, 3, &results, nullptr) == ATTN_OK);
  const std::vector<NextToken> next = expected.next_token(prompt, 3);
  const auto ids = numbers_in<std::int64_t>(results, "ids");
  REQUIRE(ids.size() == next.size());
  for (std::size_t i = 0; i < next.size(); ++i) {
    CHECK(ids[i] == next[i].id);
    CHECK(numbers_in<float>(results, "logits")[i] == next[i].logit);
    CHECK(numbers_in<float>(results, "probabilities")[i] == next[i].probability);
    CHECK(texts_in(results, "tokens")[i] == next[i].token);
    CHECK(texts_in(results, "texts")[i] == next[i].text);
  }
  attn_tensors_free(results);

  REQUIRE(attn_text_model_score_tokens(model, &text, &results, nullptr) == ATTN_OK);
  const ScoredText scored = expected.score_tokens(prompt);
  const auto log_probabilities = numbers_in<float>(results, "log_probabilities"), entropies = numbers_in<float>(results, "entropies");
  const auto ranks = numbers_in<std::int64_t>(results, "ranks");
  REQUIRE(log_probabilities.size() == scored.tokens.size());
  CHECK((std::isnan(log_probabilities[0]) && std::isnan(entropies[0]) && ranks[0] == 0));
  for (std::size_t i = 1; i < scored.tokens.size(); ++i) {
    CHECK(numbers_in<std::int64_t>(results, "ids")[i] == scored.tokens[i].id);
    CHECK(texts_in(results, "tokens")[i] == scored.tokens[i].token);
    CHECK(log_probabilities[i] == static_cast<float>(scored.tokens[i].log_probability.value()));
    CHECK(entropies[i] == static_cast<float>(scored.tokens[i].entropy.value()));
    CHECK(ranks[i] == scored.tokens[i].rank.value());
  }
  CHECK(numbers_in<float>(results, "perplexity")[0] == static_cast<float>(scored.perplexity));
  attn_tensors_free(results);
  attn_text_model_free(model);
}

TEST_CASE("C: generate, next_token and score_tokens refuse bad options, missing texts and encoders", "[c][tasks]") {
  const std::string folder = testdata("models/tiny-gpt2").string(), encoder = testdata("models/tiny-bert").string();
  attn_text_model *model = nullptr, *bert = nullptr;
  REQUIRE(attn_text_model_load(folder.c_str(), ATTN_WEIGHTS_AS_STORED, &model, nullptr) == ATTN_OK);
  REQUIRE(attn_text_model_load(encoder.c_str(), ATTN_WEIGHTS_AS_STORED, &bert, nullptr) == ATTN_OK);
  const attn_text text{"The", 3};
  attn_tensors* results = nullptr;
  attn_generate_options options;
  attn_generate_options_init(&options);
  options.temperature = 0;
  CHECK(attn_text_model_generate(model, &text, &options, &results, nullptr) == ATTN_ERROR_CONFIG);
  attn_generate_options_init(&options);
  options.stop_count = 1;
  CHECK(attn_text_model_generate(model, &text, &options, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  attn_generate_options_init(&options);
  options.size = 8;
  CHECK(attn_text_model_generate(model, &text, &options, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_generate(model, nullptr, nullptr, &results, nullptr) == ATTN_ERROR_ARGUMENT);
  CHECK(attn_text_model_next_token(model, &text, 0, &results, nullptr) == ATTN_ERROR_CONFIG);
  CHECK(attn_text_model_generate(bert, &text, nullptr, &results, nullptr) == ATTN_ERROR_UNSUPPORTED);
  CHECK(attn_text_model_score_tokens(bert, &text, &results, nullptr) == ATTN_ERROR_UNSUPPORTED);
  CHECK(results == nullptr);
  attn_text_model_free(model);
  attn_text_model_free(bert);
}

}  // namespace attn::test
