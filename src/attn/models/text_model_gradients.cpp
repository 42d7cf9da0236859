#include <algorithm>
#include <array>

#include "attn/models/text_model_parts.hpp"
#include "attn/tensor/float_environment.hpp"

// TextModel::gradients() and attribute().
namespace attn {

std::int64_t detail::label_of(std::string_view op, std::string_view name, const std::vector<std::string>& labels,
                              const std::variant<std::int64_t, std::string>& given) {
  if (const std::int64_t* number = std::get_if<std::int64_t>(&given)) return *number;
  const auto& label = std::get<std::string>(given);
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found != labels.end()) return found - labels.begin();
  std::string all;
  for (const std::string& each : labels) all += (all.empty() ? "" : ", ") + each;
  if (all.empty()) fail(ErrorCode::out_of_range, op, name, {"a number"}, {label}, "The checkpoint has no labels");
  fail(ErrorCode::out_of_range, op, name, {"one of ", all}, {label});
}

std::vector<std::string> detail::text_labels(const EncoderModel& model) {
  return model.config().task == Task::text_classification ? model.config().labels : std::vector<std::string>();
}

detail::ModelGradient TextModel::gradient_of(const detail::TokenIds& inputs, const GradientOptions& options) {
  constexpr std::string_view kOp = "gradients";
  detail::ModelGradientTarget target{.row = options.target.row, .component = options.target.component, .token = options.target.token};
  if (options.target.label) target.label = target_label(*options.target.label);
  const detail::TextBatch batch(kOp, inputs);
  return {kOp, encoder(), batch.inputs(), target, options.embeddings, options.attentions, options.parameters};
}

std::int64_t TextModel::target_label(const std::variant<std::int64_t, std::string>& label) const {
  constexpr std::string_view kOp = "gradients";
  const detail::ModelConfig& config = parts_->model->config();
  if (const std::string* const name = std::get_if<std::string>(&label); name != nullptr && config.predicts_tokens()) {
    const std::optional<std::int64_t> id = token_to_id(*name);
    if (!id) detail::fail(ErrorCode::out_of_range, kOp, "target.label", {"a token of the vocabulary"}, {*name});
    return *id;
  }
  static const std::vector<std::string> kEnds{"start", "end"};
  return detail::label_of(kOp, "target.label", config.task == Task::question_answering ? kEnds : config.labels, label);
}

TextAttribution TextModel::attribute(const std::string& text, const AttributeOptions& options) const {
  const detail::FloatEnvironment environment;
  constexpr std::string_view kOp = "attribute";
  const EncoderModel& model = encoder();
  EncodedTexts encoding = detail::naming_text("text", 0, [&] { return encode({text}, 0, 1, {}); });
  const std::vector<std::int64_t> ids(encoding.input_ids.begin(), encoding.input_ids.end());
  const std::vector<std::int64_t> types(encoding.token_type_ids.begin(), encoding.token_type_ids.end());
  std::vector<std::uint8_t> special;
  for (const auto& offset : encoding.offsets[0]) special.push_back(offset ? 0 : 1);
  detail::AttributionCall call{.ids = ids,
                               .types = types,
                               .special = special,
                               .pad_id = parts_->ask([](const auto& any) { return any.pad_id(); }),
                               .method = options.method,
                               .steps = options.steps};
  if (options.target) {
    call.target = detail::label_of(kOp, "target", detail::text_labels(model), *options.target);
  } else if (model.has_text_head()) {
    const detail::ModelInputs inputs{.shape = {1, static_cast<std::int64_t>(ids.size())}, .input_ids = ids, .token_type_ids = types};
    const detail::ModelPlan plan = model.plan(kOp, inputs, {});
    std::vector<float> hidden(ids.size() * static_cast<std::size_t>(plan.encoder.E)), logits(static_cast<std::size_t>(plan.logits[1]));
    model.run(plan, inputs, {hidden.data(), {}, {}}, logits.data());
    call.target = std::max_element(logits.begin(), logits.end()) - logits.begin();
  } else if (options.method != AttributionMethod::attention_rollout) {
    detail::fail(ErrorCode::argument, kOp, "target", {"the number of a component"}, {"missing"}, "The checkpoint has no head");
  }
  const detail::Attribution attribution(kOp, model, call);
  std::vector<double> sums(ids.size());
  std::vector<float> scores(ids.size());
  std::array<float, 2> values{};
  for (std::int64_t portion = 0; portion < attribution.portions(); ++portion) {
    std::array<float, 2> of_portion{};
    attribution.run(portion, scores.data(), of_portion.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(scores[i]);
    if (portion == 0) values = of_portion;
  }
  std::transform(sums.begin(), sums.end(), scores.begin(), [](double sum) { return static_cast<float>(sum); });
  TextAttribution result{std::move(encoding.tokens[0]), std::move(encoding.offsets[0]), std::move(scores)};
  if (options.method == AttributionMethod::integrated_gradients) result.delta = detail::convergence_delta(sums, values.data());
  return result;
}

}  // namespace attn
