#include "c/text_model.hpp"

using namespace attn::c;
namespace lens = attn::lens;

namespace {

std::optional<lens::Token> to_token(const char* op, const char* argument, const attn_text* given) {
  if (given == nullptr) return std::nullopt;
  return to_string(op, argument, *given);
}

lens::Token required_token(const char* op, const char* argument, const attn_text* given) {
  check_pointer(op, given, argument);
  return to_string(op, argument, *given);
}

lens::Text required_text(const char* op, const char* argument, const attn_text* given) {
  check_pointer(op, given, argument);
  return to_string(op, argument, *given);
}

std::optional<std::vector<std::int64_t>> given_or_all(const std::int64_t* numbers, std::size_t count) {
  if (numbers == nullptr) return std::nullopt;
  return std::vector<std::int64_t>(numbers, numbers + count);
}

std::optional<std::int64_t> given_or_last(std::int64_t position) { return position < 0 ? std::nullopt : std::optional(position); }

Numbers<std::int64_t> to_numbers(const std::vector<std::int64_t>& values) { return {values.data(), {std::ssize(values)}}; }

Numbers<float> to_number(double value) {
  const auto number = static_cast<float>(value);
  return {&number, {1}};
}

/// (layers,columns)
Numbers<float> to_numbers(const lens::LayerTable& table) {
  Numbers<float> numbers({std::ssize(table), table.empty() ? 0 : std::ssize(table.front())});
  float* to = numbers.data();
  for (const std::vector<float>& row : table) to = std::copy(row.begin(), row.end(), to);
  return numbers;
}

lens::PatchOptions to_options(const char* op, const attn_text* answer, const attn_patch_options* given) {
  const auto from = to_known(op, "options", given, attn_patch_options_init);
  return {
      .answer = required_token(op, "answer", answer),
      .contrast = to_token(op, "options.contrast", from.contrast),
      .site = static_cast<lens::PatchSite>(find_name(op, "options.site", from.site, lens::kPatchSiteNames)),
      .position = given_or_last(from.position),
      .positions = given_or_all(from.positions, from.position_count),
  };
}

using PatchFunction = lens::PatchResult (*)(const attn::TextModel&, const lens::Text&, const lens::Text&, const lens::PatchOptions&);

attn_status patched(const char* op, PatchFunction run, const attn_text_model* model, const attn_text* clean, const attn_text* corrupted,
                    const attn_text* answer, const attn_patch_options* options, attn_tensors** results, attn_error** error) {
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    lens::PatchResult made =
        run(model->module, required_text(op, "clean", clean), required_text(op, "corrupted", corrupted), to_options(op, answer, options));
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("recovered", to_numbers(made.recovered));
    tensors->put("positions", to_numbers(made.positions));
    tensors->put("clean", to_number(made.clean));
    tensors->put("corrupted", to_number(made.corrupted));
    tensors->texts["clean_tokens"] = std::move(made.clean_tokens);
    tensors->texts["corrupted_tokens"] = std::move(made.corrupted_tokens);
    return tensors;
  });
}

}  // namespace

extern "C" {

void(attn_logit_lens_options_init)(attn_logit_lens_options* options, size_t size) {
  init_options<attn_logit_lens_options>(options, size, {.top_k = lens::LogitLensOptions{}.top_k});
}

attn_status attn_text_model_logit_lens(const attn_text_model* model, const attn_text* text, const attn_logit_lens_options* options,
                                       attn_tensors** results, attn_error** error) {
  const char* op = "logit_lens";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const auto from = to_known(op, "options", options, attn_logit_lens_options_init);
    lens::LogitLens made = lens::logit_lens(
        model->module, required_text(op, "text", text),
        {.layers = given_or_all(from.layers, from.layer_count), .positions = given_or_all(from.positions, from.position_count), .top_k = from.top_k});
    auto tensors = std::make_unique<attn_tensors>();
    const bool any = !made.predictions.empty() && !made.predictions[0].empty();
    const attn::Shape shape{std::ssize(made.layers), std::ssize(made.positions), any ? std::ssize(made.predictions[0][0]) : 0};
    Numbers<std::int64_t> ids(shape);
    Numbers<float> logits(shape), probabilities(shape);
    std::size_t at = 0;
    for (const auto& layer : made.predictions)
      for (const auto& position : layer)
        for (const lens::LogitLensPrediction& each : position) {
          ids.data()[at] = each.id;
          logits.data()[at] = each.logit;
          probabilities.data()[at++] = each.probability;
          tensors->texts["predictions"].push_back(each.token);
        }
    tensors->put("layers", to_numbers(made.layers));
    tensors->put("positions", to_numbers(made.positions));
    tensors->put("ids", std::move(ids));
    tensors->put("logits", std::move(logits));
    tensors->put("probabilities", std::move(probabilities));
    tensors->texts["tokens"] = std::move(made.tokens);
    return tensors;
  });
}

void(attn_logit_attribution_options_init)(attn_logit_attribution_options* options, size_t size) {
  init_options<attn_logit_attribution_options>(options, size, {.position = -1});
}

attn_status attn_text_model_logit_attribution(const attn_text_model* model, const attn_text* text, const attn_text* target,
                                              const attn_logit_attribution_options* options, attn_tensors** results, attn_error** error) {
  const char* op = "logit_attribution";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const auto from = to_known(op, "options", options, attn_logit_attribution_options_init);
    lens::LogitAttribution made = lens::logit_attribution(model->module, required_text(op, "text", text),
                                                          {.target = required_token(op, "target", target),
                                                           .contrast = to_token(op, "options.contrast", from.contrast),
                                                           .position = given_or_last(from.position)});
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("position", Numbers<std::int64_t>(&made.position, {1}));
    tensors->put("value", to_number(made.value));
    tensors->put("embedding", to_number(made.embedding));
    tensors->put("heads", to_numbers(made.heads));
    tensors->put("mlps", Numbers<float>(made.mlps.data(), {std::ssize(made.mlps)}));
    tensors->put("biases", to_number(made.biases));
    tensors->texts["tokens"] = std::move(made.tokens);
    return tensors;
  });
}

void(attn_patch_options_init)(attn_patch_options* options, size_t size) {
  init_options<attn_patch_options>(options, size, {.site = lens::kPatchSiteNames[0].data(), .position = -1});
}

attn_status attn_text_model_patch_activations(const attn_text_model* model, const attn_text* clean, const attn_text* corrupted,
                                              const attn_text* answer, const attn_patch_options* options, attn_tensors** results,
                                              attn_error** error) {
  return patched("patch_activations", lens::patch_activations, model, clean, corrupted, answer, options, results, error);
}

attn_status attn_text_model_attribution_patching(const attn_text_model* model, const attn_text* clean, const attn_text* corrupted,
                                                 const attn_text* answer, const attn_patch_options* options, attn_tensors** results,
                                                 attn_error** error) {
  return patched("attribution_patching", lens::attribution_patching, model, clean, corrupted, answer, options, results, error);
}

void(attn_head_scores_options_init)(attn_head_scores_options* options, size_t size) { init_options<attn_head_scores_options>(options, size, {}); }

attn_status attn_text_model_head_scores(const attn_text_model* model, const attn_head_scores_options* options, attn_tensors** results,
                                        attn_error** error) {
  const char* op = "head_scores";
  return making(op, results, error, [&] {
    check_pointer(op, model, "model");
    const auto from = to_known(op, "options", options, attn_head_scores_options_init);
    lens::HeadScoresOptions given{.seed = from.seed};
    if (from.kinds != nullptr) {
      given.kinds.clear();
      for (std::size_t i = 0; i < from.kind_count; ++i)
        given.kinds.push_back(static_cast<lens::HeadKind>(find_name(op, "options.kinds", from.kinds[i], lens::kHeadKindNames)));
    }
    if (from.text != nullptr) given.text = required_text(op, "options.text", from.text);
    lens::HeadScores made = lens::head_scores(model->module, given);
    auto tensors = std::make_unique<attn_tensors>();
    tensors->put("ids", to_numbers(made.ids));
    for (const auto& [kind, table] : made.scores) tensors->put("scores." + std::string(name_of(kind)), to_numbers(table));
    tensors->texts["tokens"] = std::move(made.tokens);
    return tensors;
  });
}

}  // extern "C"
