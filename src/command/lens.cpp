#include "lens.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "attn/core.hpp"
#include "generation.hpp"
#include "printed.hpp"
#include "written.hpp"

namespace command {
namespace {

namespace lens = attn::lens;

/// `options`: in addition to --method, --weights and --json.
struct Method {
  std::string_view name;
  std::vector<std::string_view> options;
};
const std::array<Method, 5> kMethods{Method{"logit-lens", {"position", "top-k"}}, Method{"logit-attribution", {"target", "contrast", "position"}},
                                     Method{"patch-activations", {"target", "contrast", "corrupted", "site", "position"}},
                                     Method{"attribution-patching", {"target", "contrast", "corrupted", "site", "position"}},
                                     Method{"head-scores", {"kind"}}};

std::string single(double value) { return number(static_cast<float>(value)); }
std::string numbers(const std::vector<float>& row) { return array(row, number); }
std::string table(const lens::LayerTable& rows) { return array(rows, numbers); }

std::string required(const Call& call, std::string_view name, std::string_view kind) {
  if (!call.has(name)) throw Misuse{"--" + std::string(name) + " is missing, expected a " + std::string(kind)};
  return std::string(call.text(name));
}

std::optional<std::int64_t> position_of(const Call& call) {
  return call.has("position") ? std::optional(std::stoll(std::string(call.text("position")))) : std::nullopt;
}

std::optional<lens::Token> contrast_of(const Call& call) {
  return call.has("contrast") ? std::optional<lens::Token>(std::string(call.text("contrast"))) : std::nullopt;
}

void print_logit_lens(const attn::TextModel& model, const std::string& text, const Call& call) {
  lens::LogitLensOptions options;
  if (call.has("top-k")) options.top_k = std::stoll(std::string(call.text("top-k")));
  if (const auto position = position_of(call)) options.positions = std::vector{*position};
  const lens::LogitLens result = lens::logit_lens(model, text, options);
  if (call.has("json")) {
    const auto id = [](std::int64_t each) { return std::to_string(each); };
    const auto prediction = [](const lens::LogitLensPrediction& each) {
      return R"({"id":)" + std::to_string(each.id) + R"(,"token":)" + json_string(each.token) + R"(,"logit":)" + number(each.logit) +
             R"(,"probability":)" + number(each.probability) + "}";
    };
    const auto of_position = [&](const auto& each) { return array(each, prediction); };
    const auto of_layer = [&](const auto& each) { return array(each, of_position); };
    return print_line(R"({"tokens":)" + array(result.tokens, json_string) + R"(,"layers":)" + array(result.layers, id) + R"(,"positions":)" +
                      array(result.positions, id) + R"(,"predictions":)" + array(result.predictions, of_layer) + "}");
  }
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer)
    print_line(std::to_string(result.layers[layer]) + "\t" +
               joined(result.predictions[layer].back(), "\t", [](const auto& each) { return column(each.token) + "\t" + number(each.probability); }));
}

void print_logit_attribution(const attn::TextModel& model, const std::string& text, const Call& call) {
  const lens::LogitAttribution parts = lens::logit_attribution(
      model, text, {.target = required(call, "target", "token"), .contrast = contrast_of(call), .position = position_of(call)});
  if (call.has("json"))
    return print_line(R"({"tokens":)" + array(parts.tokens, json_string) + R"(,"position":)" + std::to_string(parts.position) + R"(,"value":)" +
                      single(parts.value) + R"(,"embedding":)" + single(parts.embedding) + R"(,"heads":)" + table(parts.heads) + R"(,"mlps":)" +
                      numbers(parts.mlps) + R"(,"biases":)" + single(parts.biases) + "}");
  print_line(single(parts.embedding) + "\tembedding");
  for (std::size_t layer = 0; layer < parts.heads.size(); ++layer) {
    const std::string name = "\tlayer " + std::to_string(layer);
    for (std::size_t head = 0; head < parts.heads[layer].size(); ++head)
      print_line(number(parts.heads[layer][head]) + name + " head " + std::to_string(head));
    print_line(number(parts.mlps[layer]) + name + " mlp");
  }
  print_line(single(parts.biases) + "\tbiases");
  print_line(single(parts.value) + "\ttotal");
}

void print_patching(const attn::TextModel& model, const std::string& text, const Call& call) {
  lens::PatchOptions options{.answer = required(call, "target", "token"), .contrast = contrast_of(call), .position = position_of(call)};
  const auto* const site = std::find(lens::kPatchSiteNames.begin(), lens::kPatchSiteNames.end(), call.text("site", "residual"));
  options.site = static_cast<lens::PatchSite>(site - lens::kPatchSiteNames.begin());
  const std::string corrupted = required(call, "corrupted", "text");
  const bool is_estimate = call.text("method") == "attribution-patching", by_heads = options.site == lens::PatchSite::head;
  const lens::PatchResult result = (is_estimate ? lens::attribution_patching : lens::patch_activations)(model, text, corrupted, options);
  if (call.has("json"))
    return print_line(R"({"clean_tokens":)" + array(result.clean_tokens, json_string) + R"(,"corrupted_tokens":)" +
                      array(result.corrupted_tokens, json_string) + R"(,"clean":)" + single(result.clean) + R"(,"corrupted":)" +
                      single(result.corrupted) + R"(,"recovered":)" + table(result.recovered) + "}");
  std::string head = "layer";
  for (std::size_t i = 0; i < result.recovered[0].size(); ++i) {
    head += '\t';
    head += by_heads ? "head " + std::to_string(i) : column(result.clean_tokens[i]);
  }
  print_line(head);
  for (std::size_t layer = 0; layer < result.recovered.size(); ++layer)
    print_line(std::to_string(layer) + "\t" + joined(result.recovered[layer], "\t", number));
}

void print_head_scores(const attn::TextModel& model, const std::optional<std::string>& text, const Call& call) {
  lens::HeadScoresOptions options;
  if (text) options.text = *text;
  const auto dashed = [](std::string_view name) {
    std::string word(name);
    std::replace(word.begin(), word.end(), '_', '-');
    return word;
  };
  if (call.has("kind")) std::erase_if(options.kinds, [&](lens::HeadKind kind) { return dashed(name_of(kind)) != call.text("kind"); });
  const lens::HeadScores result = lens::head_scores(model, options);
  if (call.has("json"))
    return print_line(
        R"({"tokens":)" + array(result.tokens, json_string) + R"(,"ids":)" + array(result.ids, [](std::int64_t id) { return std::to_string(id); }) +
        R"(,"scores":{)" +
        joined(options.kinds, ",", [&](lens::HeadKind kind) { return json_string(name_of(kind)) + ":" + table(result.scores.at(kind)); }) + "}}");
  for (const lens::HeadKind kind : options.kinds)
    for (std::size_t layer = 0; layer < result.scores.at(kind).size(); ++layer)
      print_line(dashed(name_of(kind)) + "\t" + std::to_string(layer) + "\t" + joined(result.scores.at(kind)[layer], "\t", number));
}

}  // namespace

void run_lens(const Call& given) {
  Call call = given;
  call.options.try_emplace("method", kMethods[0].name);
  const std::string_view name = call.text("method");
  const auto* const method = std::find_if(kMethods.begin(), kMethods.end(), [&](const Method& each) { return each.name == name; });
  for (const auto& [option, value] : call.options)
    if (option != "method" && option != "weights" && option != "json" &&
        std::find(method->options.begin(), method->options.end(), option) == method->options.end())
      throw Misuse{"lens --method " + std::string(name) + " takes no --" + option};
  const bool is_of_heads = name == "head-scores";
  if (call.paths.size() == 1 && !is_of_heads) throw Misuse{"TEXT is missing"};
  const std::optional<std::string> text = call.paths.size() > 1 ? std::optional(text_of(call)) : std::nullopt;
  if (name == "logit-attribution") required(call, "target", "token");
  if (name.find("patch") != std::string_view::npos) required(call, "target", "token"), required(call, "corrupted", "text");
  const attn::TextModel model = load_model(call);
  if (is_of_heads) return print_head_scores(model, text, call);
  if (name == "logit-lens") return print_logit_lens(model, *text, call);
  (name == "logit-attribution" ? print_logit_attribution : print_patching)(model, *text, call);
}

}  // namespace command
