#include <limits>

#include "c/text_model.hpp"

using namespace attn::c;

namespace {

using Limits = std::numeric_limits<float>;

attn::GenerateOptions to_options(const char* op, const attn_generate_options* given) {
  const auto from = to_known(op, "options", given, attn_generate_options_init);
  attn::GenerateOptions options{.max_new_tokens = from.max_new_tokens,
                                .sampling = {.do_sample = from.do_sample,
                                             .temperature = from.temperature,
                                             .top_k = from.top_k,
                                             .top_p = from.top_p,
                                             .min_p = from.min_p,
                                             .repetition_penalty = from.repetition_penalty,
                                             .seed = from.seed},
                                .stop = to_strings(op, from.stop, from.stop_count, "stop"),
                                .add_special_tokens = from.add_special_tokens};
  if (from.on_token != nullptr)
    options.on_token = [on_token = from.on_token, user_data = from.user_data](const attn::GeneratedToken& each) {
      const attn_generated_token token{each.id, {each.text.data(), each.text.size()}, each.probability};
      return on_token(&token, user_data);
    };
  return options;
}

template <class T, class Items, class Get>
Numbers<T> column(const Items& items, Get get) {
  Numbers<T> numbers(attn::Shape{static_cast<std::int64_t>(items.size())});
  for (std::size_t i = 0; i < items.size(); ++i) numbers.data()[i] = get(items[i]);
  return numbers;
}

}  // namespace

extern "C" {

void(attn_generate_options_init)(attn_generate_options* options, size_t size) {
  const attn::GenerateOptions defaults;
  init_options<attn_generate_options>(options, size,
                                      {.max_new_tokens = defaults.max_new_tokens,
                                       .do_sample = defaults.sampling.do_sample,
                                       .temperature = defaults.sampling.temperature,
                                       .top_k = defaults.sampling.top_k,
                                       .top_p = defaults.sampling.top_p,
                                       .min_p = defaults.sampling.min_p,
                                       .repetition_penalty = defaults.sampling.repetition_penalty,
                                       .seed = defaults.sampling.seed,
                                       .add_special_tokens = defaults.add_special_tokens});
}

attn_status attn_text_model_generate(const attn_text_model* model, const attn_text* prompt, const attn_generate_options* options,
                                     attn_tensors** results, attn_error** error) {
  const char* op = "generate";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, prompt, "prompt");
    attn::GeneratedText made = model->module.generate(to_string(op, "prompt", *prompt), to_options(op, options));
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("ids", Numbers<std::int64_t>(made.ids.data(), {static_cast<std::int64_t>(made.ids.size())}));
    tensors->texts["text"] = {std::move(made.text)};
    tensors->texts["tokens"] = std::move(made.tokens);
    tensors->texts["finish_reason"] = {std::string(attn::kFinishReasonNames[static_cast<std::size_t>(made.finish_reason)])};
    return tensors;
  });
}

attn_status attn_text_model_next_token(const attn_text_model* model, const attn_text* text, int64_t top_k, attn_tensors** results,
                                       attn_error** error) {
  const char* op = "next_token";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, text, "text");
    const std::vector<attn::NextToken> next = model->module.next_token(to_string(op, "text", *text), top_k);
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("ids", column<std::int64_t>(next, [](const attn::NextToken& each) { return each.id; }));
    tensors->put("logits", column<float>(next, [](const attn::NextToken& each) { return each.logit; }));
    tensors->put("probabilities", column<float>(next, [](const attn::NextToken& each) { return each.probability; }));
    for (const attn::NextToken& each : next) {
      tensors->texts["tokens"].push_back(each.token);
      tensors->texts["texts"].push_back(each.text);
    }
    return tensors;
  });
}

attn_status attn_text_model_score_tokens(const attn_text_model* model, const attn_text* text, attn_tensors** results, attn_error** error) {
  const char* op = "score_tokens";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    check_pointer(op, text, "text");
    const attn::ScoredText scored = model->module.score_tokens(to_string(op, "text", *text));
    auto tensors = std::make_unique<attn_tensors>();
    const auto real = [](const std::optional<double>& value) { return value ? static_cast<float>(*value) : Limits::quiet_NaN(); };
    tensors->put("ids", column<std::int64_t>(scored.tokens, [](const attn::ScoredToken& each) { return each.id; }));
    tensors->put("log_probabilities", column<float>(scored.tokens, [&](const attn::ScoredToken& each) { return real(each.log_probability); }));
    tensors->put("entropies", column<float>(scored.tokens, [&](const attn::ScoredToken& each) { return real(each.entropy); }));
    tensors->put("ranks", column<std::int64_t>(scored.tokens, [](const attn::ScoredToken& each) { return each.rank.value_or(0); }));
    const auto perplexity = static_cast<float>(scored.perplexity);
    tensors->put("perplexity", Numbers<float>(&perplexity, {1}));
    for (const attn::ScoredToken& each : scored.tokens) tensors->texts["tokens"].push_back(each.token);
    return tensors;
  });
}

}  // extern "C"
