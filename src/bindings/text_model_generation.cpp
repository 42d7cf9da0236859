#include "attn/models/language_model.hpp"
#include "token_model.hpp"

namespace attn::bindings {
namespace {

void create_cache(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t number = 0, batch_size = 1;
  std::optional<std::int64_t> max_length;
  arguments.require("number", number);
  arguments.group("options", [&] {
    arguments.option("maxLength", max_length);
    arguments.option("batchSize", batch_size);
  });
  work([&](TokenModel& self, Result& result) {
    KeyValueCache cache = self.model().make_cache(batch_size, max_length.value_or(self.config().max_length));
    result.set_number(static_cast<double>(cache.max_length()));
    self.add_cache(number, std::move(cache));
  });
}

void cache_length(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t number = 0;
  std::optional<std::int64_t> length;
  arguments.require("number", number);
  arguments.option("length", length);
  work([&](TokenModel& self, Result& result) {
    KeyValueCache& cache = self.cache("length", number);
    if (length) cache.truncate(*length);
    result.set_number(static_cast<double>(cache.length()));
  });
}

void free_cache(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t number = 0;
  arguments.require("number", number);
  work([&](TokenModel& self, Result&) { self.free_cache(number); });
}

/// id, logit, probability. Ids below 2²⁴ are exact in float32.
void add(std::span<const TokenChoice> choices, Result& result) {
  float* to = result.add({std::ssize(choices), 3});
  for (const TokenChoice& choice : choices)
    for (const float value : {static_cast<float>(choice.id), choice.logit, choice.probability}) *to++ = value;
}

/// `inputIds` is the whole text, of which the cache has the first ids.
void generate_token(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds");
  std::int64_t number = 0, step = 0;
  arguments.require("number", number);
  arguments.require("step", step);
  SamplingOptions options;
  arguments.group("options", [&] {
    arguments.option("doSample", options.do_sample);
    arguments.option("temperature", options.temperature);
    arguments.option("topK", options.top_k);
    arguments.option("topP", options.top_p);
    arguments.option("minP", options.min_p);
    arguments.option("repetitionPenalty", options.repetition_penalty);
    arguments.option("seed", options.seed);
  });
  work([&](TokenModel& self, Result& result) {
    detail::check_sampling("generate", options);
    KeyValueCache& cache = self.cache("generate", number);
    const std::span<const std::int64_t> next = std::span(ids).subspan(static_cast<std::size_t>(cache.length()));
    const std::vector<float> logits = detail::next_logits("generate", self.model(), next, &cache);
    const TokenChoice choice = detail::choose_token(logits, ids, options, static_cast<std::uint64_t>(step));
    add({&choice, 1}, result);
  });
}

void next_tokens(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds");
  std::int64_t top_k = 0;
  arguments.require("topK", top_k);
  work([&](TokenModel& self, Result& result) {
    add(detail::likeliest_tokens(detail::next_logits("nextToken", self.model(), ids), static_cast<std::size_t>(top_k)), result);
  });
}

/// Log probability, rank and entropy of each token but the first; the number is the perplexity.
void score_tokens(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds");
  work([&](TokenModel& self, Result& result) {
    const std::vector<detail::TokenScore> scores = detail::score_tokens("scoreTokens", self.model(), ids);
    result.set_number(detail::perplexity(scores));
    float* to = result.add({std::ssize(scores), 3});
    for (const detail::TokenScore& score : scores)
      for (const double value : {score.log_probability, static_cast<double>(score.rank), score.entropy}) *to++ = static_cast<float>(value);
  });
}

}  // namespace

void define_generation(TokenModelClass& model) {
  model.method<create_cache>("createCache", "number")
      .method<cache_length>("cacheLength", "number")
      .method<free_cache>("freeCache", "none")
      .method<generate_token>("generateToken", "tensor")
      .method<next_tokens>("nextTokens", "tensor")
      .method<score_tokens>("scoreTokens", "raw");
}

}  // namespace attn::bindings
