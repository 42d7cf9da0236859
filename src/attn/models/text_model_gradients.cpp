#include <algorithm>
#include <array>

#include "attn/models/lens_model.hpp"
#include "attn/models/text_model_parts.hpp"
#include "attn/tensor/float_environment.hpp"

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
  if (options.target.label) target.label = output_number(kOp, "target.label", *options.target.label);
  const detail::TextBatch batch(kOp, inputs);
  return {kOp, encoder(), batch.inputs(), target, options.embeddings, options.attentions, options.parameters};
}

std::int64_t TextModel::output_number(std::string_view op, std::string_view name, const std::variant<std::int64_t, std::string>& given) const {
  const detail::ModelConfig& config = parts_->model->config();
  if (std::holds_alternative<std::string>(given) && config.predicts_tokens())
    return detail::LensModel(op, *this).token(std::string(name).c_str(), given);
  static const std::vector<std::string> kEnds{"start", "end"};
  return detail::label_of(op, name, config.task == Task::question_answering ? kEnds : config.labels, given);
}

TextAttribution TextModel::attribute(const std::string& text, const AttributeOptions& options) const {
  const detail::FloatEnvironment environment;
  constexpr std::string_view kOp = "attribute";
  const EncoderModel& model = encoder();
  const bool continues = model.config().task == Task::text_generation && model.has_head();
  // A truncated text would have other positions.
  const auto tokenize = continues ? TokenizeOptions{.max_length = model.config().max_length, .truncation = false} : TokenizeOptions{};
  EncodedTexts encoding = detail::naming_text("text", 0, [&] { return encode({text}, 0, 1, tokenize); });
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
  if (continues && ids.empty()) detail::fail(ErrorCode::argument, kOp, "text", {"at least one token"}, {"none"});
  call.position = options.position ? options.position : continues ? std::optional<std::int64_t>(std::ssize(ids) - 1) : std::nullopt;
  const bool of_head = call.position || model.has_text_head();
  const auto output = [&](std::string_view name, const std::variant<std::int64_t, std::string>& given) {
    return of_head ? output_number(kOp, name, given) : detail::label_of(kOp, name, {}, given);
  };
  if (options.contrast) call.contrast = output("contrast", *options.contrast);
  if (options.target) call.target = output("target", *options.target);
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
