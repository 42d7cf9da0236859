#include "attn/models/fine_tuning.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "attn/kernels/philox.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/ops/losses.hpp"
#include "attn/train/clip_grad_norm.hpp"
#include "attn/train/schedules.hpp"

namespace attn::detail {
namespace {

constexpr double kMaxNorm = 1;

AdamWOptions adamw(const FineTuningOptions& options) {
  const auto does_not_decay = [](const std::string& name) {
    return name.find("bias") != std::string::npos || name.find("norm") != std::string::npos;
  };
  return {.learning_rate = options.learning_rate, .weight_decay = options.weight_decay, .groups = {{.names = does_not_decay, .weight_decay = 0}}};
}

EncoderModel& checked(std::string_view op, EncoderModel& model, const FineTuningOptions& options) {
  check_fine_tuning(op, model, options, false);
  return model;
}

}  // namespace

void check_fine_tuning(std::string_view op, const EncoderModel& model, const FineTuningOptions& options, bool new_head) {
  model.check_gradients(op);
  check_at_least_0(op, "learning_rate", options.learning_rate, true);
  check_at_least_0(op, "weight_decay", options.weight_decay);
  const ModelConfig& config = model.config();
  if (!new_head && config.num_labels() > 1 && config.classification_function != ClassificationFunction::softmax)
    fail(ErrorCode::unsupported, op, "the head", {"one answer for a text"}, {"for several (multi-label)"});
  if (options.layers && (*options.layers < 0 || *options.layers > config.num_hidden_layers))
    fail(ErrorCode::out_of_range, op, "layers", {"0 to ", config.num_hidden_layers, ", all that there are"}, {*options.layers});
}

void check_targets(std::string_view op, std::span<const double> targets, std::int64_t classes, bool is_regression) {
  const auto is_good = [&](double target) {
    if (is_regression) return std::isfinite(target);
    if (classes == 1) return target >= 0 && target <= 1;
    return target >= 0 && target < static_cast<double>(classes) && target == std::floor(target);
  };
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!is_good(targets[i]))
      fail(ErrorCode::out_of_range, op, text({"examples[", i, "].label"}),
           {is_regression  ? std::string("a finite number")
            : classes == 1 ? std::string("a number from 0 to 1")
                           : text({"a label from 0 to ", classes - 1})},
           {targets[i]}, {{"index", static_cast<double>(i)}});
}

std::vector<std::size_t> training_order(std::size_t count, std::uint64_t seed, std::uint32_t epoch) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = count; i-- > 1;) {  // Fisher & Yates
    const auto place = static_cast<std::uint64_t>(i);
    const std::uint32_t drawn = kernels::philox({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), epoch, 0x666f6c64},
                                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)})[0];
    std::swap(order[i], order[static_cast<std::size_t>((place + 1) * drawn >> 32)]);
  }
  return order;
}

FineTuning::Trained::Trained(EncoderModel& model, std::optional<std::int64_t> layers) : model_(model) {
  const ModelConfig& config = model.config();
  const auto is_trained = [&](const std::string& name) {
    constexpr std::string_view kLayers = "encoder.layers.";
    if (!layers || name.starts_with("classifier")) return true;
    if (name.starts_with(kLayers)) {
      std::int64_t layer = 0;
      std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
      return layer >= config.num_hidden_layers - *layers;
    }
    return *layers > 0 && name.starts_with("encoder.norm.");
  };
  // Of those that the checkpoint has: biases that a family does without stay 0.
  const std::map<std::string, Shape> all = model.state_shapes();
  for (const std::vector<GradientPart>& parts : model.gradient_parts())
    for (const GradientPart& part : parts)
      if (is_trained(part.name)) shapes_.emplace(part.name, all.at(part.name));
}

StateParameters FineTuning::Trained::state_parameters() const {
  StateParameters parameters = model_.state_parameters();
  std::erase_if(parameters, [&](const auto& entry) { return !shapes_.contains(entry.first); });
  return parameters;
}

FineTuning::FineTuning(std::string_view op, EncoderModel& model, const FineTuningOptions& options)
    : op_(op),
      model_(checked(op, model, options)),
      learning_rate_(options.learning_rate),
      steps_(options.steps),
      trained_(model, options.layers),
      modules_{trained_},
      optimizer_(modules_, adamw(options)) {}

void FineTuning::refuse(std::string_view what, double value) const {
  fail(ErrorCode::out_of_range, op_, text({what, " of step ", step_ + 1}), {"a finite number: a smaller learning_rate may help"}, {value});
}

double FineTuning::loss_of(const float* logits, std::span<const double> targets, float* gradient) const {
  const auto rows = static_cast<std::int64_t>(targets.size()), classes = model_.config().num_labels();
  const TensorView view(logits, {rows, classes});
  if (classes > 1) {
    const std::vector<std::int64_t> labels(targets.begin(), targets.end());
    return static_cast<double>(cross_entropy(view, labels, {}, gradient));
  }
  const std::vector<float> numbers(targets.begin(), targets.end());
  const TensorView wanted(numbers.data(), {rows, 1});
  if (model_.config().classification_function == ClassificationFunction::none) return static_cast<double>(mse_loss(view, wanted, {}, gradient));
  return static_cast<double>(binary_cross_entropy(view, wanted, {}, gradient));
}

Gradients& FineTuning::new_gradients() {
  Gradients& gradients = modules_.front().gradients();
  gradients.zero();
  gradients.reserve(trained_.parameter_shapes());
  return gradients;
}

void FineTuning::update() {
  const double norm = clip_grad_norm(modules_, kMaxNorm);
  if (!std::isfinite(norm)) refuse("the norm of the gradient", norm);
  optimizer_.set_learning_rate(linear_schedule(step_, {.learning_rate = learning_rate_, .steps = steps_}));
  optimizer_.step();
  ++step_;
}

double FineTuning::step(const ModelInputs& inputs, std::span<const double> targets) {
  const ModelPlan plan = model_.plan(op_, inputs, {.for_backward = true});
  AlignedFloats hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
  std::vector<float> grad(targets.size() * static_cast<std::size_t>(model_.config().num_labels()));
  Gradients& gradients = new_gradients();
  const std::unique_ptr<KeptModel> kept = model_.run_and_keep(plan, inputs, {hidden.data(), {}, {}}, true);
  const double loss = loss_of(kept->result, targets, grad.data());
  if (!std::isfinite(loss)) refuse("the loss", loss);
  model_.backward(*kept, grad.data(), {.parameters = &gradients});
  update();
  return loss;
}

double FineTuning::step(std::span<const float> pooled, std::span<const double> targets) {
  std::vector<float> grad(targets.size() * static_cast<std::size_t>(model_.config().num_labels()));
  Gradients& gradients = new_gradients();
  KeptHead kept{.pooled = pooled.data(), .sequences = static_cast<std::int64_t>(targets.size())};
  model_.run_head_and_keep(kept);
  const double loss = loss_of(kept.logits, targets, grad.data());
  if (!std::isfinite(loss)) refuse("the loss", loss);
  model_.backward(kept, grad.data(), gradients);
  update();
  return loss;
}

void FineTuning::pool(const ModelInputs& inputs, float* pooled) const {
  const ModelPlan plan = model_.plan(op_, inputs, {});
  AlignedFloats hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
  model_.run(plan, inputs, {hidden.data(), {}, {}}, nullptr);
  pool_sequences(inputs, plan.encoder.E, hidden.data(), model_.config().classifier_pooling, pooled, plan.encoder.E);
}

Judgement FineTuning::judge_logits(const float* logits, std::span<const double> targets) const {
  const auto classes = static_cast<std::size_t>(model_.config().num_labels());
  std::vector<float> unused(targets.size() * classes);
  Judgement judgement{.loss = loss_of(logits, targets, unused.data()) * static_cast<double>(targets.size())};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const float* const row = logits + i * classes;
    if (classes > 1)
      judgement.right += std::max_element(row, row + classes) - row == static_cast<std::ptrdiff_t>(targets[i]) ? 1 : 0;
    else if (model_.config().classification_function == ClassificationFunction::sigmoid)
      judgement.right += (row[0] > 0) == (targets[i] > 0.5) ? 1 : 0;
  }
  return judgement;
}

Judgement FineTuning::judge(const ModelInputs& inputs, std::span<const double> targets) const {
  const ModelPlan plan = model_.plan(op_, inputs, {});
  AlignedFloats hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
  std::vector<float> logits(targets.size() * static_cast<std::size_t>(model_.config().num_labels()));
  model_.run(plan, inputs, {hidden.data(), {}, {}}, logits.data());
  return judge_logits(logits.data(), targets);
}

Judgement FineTuning::judge(std::span<const float> pooled, std::span<const double> targets) const {
  KeptHead kept{.pooled = pooled.data(), .sequences = static_cast<std::int64_t>(targets.size())};
  model_.run_head_and_keep(kept);
  return judge_logits(kept.logits, targets);
}

}  // namespace attn::detail
