#include "attn/models/fine_tuning.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "attn/kernels/philox.hpp"
#include "attn/models/family.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/ops/losses.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/train/clip_grad_norm.hpp"
#include "attn/train/schedules.hpp"

namespace attn::detail {
namespace {

constexpr double kMaxNorm = 1;
constexpr DropoutSite kDropoutSites[] = {DropoutSite::attention_weights,   DropoutSite::attention_output,  DropoutSite::hidden,
                                         DropoutSite::feed_forward_output, DropoutSite::embeddings,        DropoutSite::pooled,
                                         DropoutSite::classifier,          DropoutSite::relative_positions};

AdamWOptions adamw(const FineTuningOptions& options) {
  const auto does_not_decay = [](const std::string& name) {
    return name.find("bias") != std::string::npos || name.find("norm") != std::string::npos;
  };
  return {.learning_rate = options.learning_rate, .weight_decay = options.weight_decay, .groups = {{.names = does_not_decay, .weight_decay = 0}}};
}

HeadLoss loss_of_head(std::string_view op, const ModelConfig& config) {
  if (config.task == Task::text_generation) return HeadLoss::next_token;
  if (config.num_labels() == 1)
    return config.classification_function == ClassificationFunction::none ? HeadLoss::mse : HeadLoss::binary_cross_entropy;
  if (config.classification_function != ClassificationFunction::softmax)
    fail(ErrorCode::unsupported, op, "the head", {"a head with one answer per text"}, {"multi-label"});
  return HeadLoss::cross_entropy;
}

struct NextTokens {
  std::vector<std::int64_t> positions = {};
  std::vector<double> ids = {};
};

NextTokens next_tokens(std::string_view op, std::span<const double> targets, std::int64_t vocabulary) {
  NextTokens next;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) continue;
    if (!(targets[i] >= 0 && targets[i] < static_cast<double>(vocabulary)))
      fail(ErrorCode::out_of_range, op, text({"targets[", i, "]"}), {"an id from 0 to ", vocabulary - 1}, {targets[i]});
    next.positions.push_back(static_cast<std::int64_t>(i));
    next.ids.push_back(targets[i]);
  }
  if (next.ids.empty()) fail(ErrorCode::argument, op, "targets", {"at least one next token"}, {"empty"});
  return next;
}

}  // namespace

HeadLoss check_fine_tuning(std::string_view op, const EncoderModel& model, const FineTuningOptions& options, std::optional<std::int64_t> new_labels) {
  model.check_gradients(op);
  check_at_least_0(op, "learning_rate", options.learning_rate, true);
  check_at_least_0(op, "weight_decay", options.weight_decay);
  const ModelConfig& config = model.config();
  const bool is_language_model = config.task == Task::text_generation;
  if (!is_language_model && config.family->text_classification.classifier.empty())
    fail(ErrorCode::unsupported, op, "the model", {"an encoder"}, {"a ", config.family->architecture, ", whose classifiers attn does not have"});
  for (const DropoutSite site : kDropoutSites) check_dropout(op, config.dropout.at(site));
  if (options.layers && (*options.layers < 0 || *options.layers > config.stored_layers()))
    fail(ErrorCode::out_of_range, op, "layers", {"a number from 0 to ", config.stored_layers()}, {*options.layers});
  if (is_language_model && options.layers == 0 && config.is_tied())
    fail(ErrorCode::out_of_range, op, "layers", {"a number from 1 to ", config.stored_layers()}, {*options.layers},
         "The head shares the word embeddings, which are trained with all layers");
  if (!new_labels) return loss_of_head(op, config);
  return *new_labels == 1 ? HeadLoss::binary_cross_entropy : HeadLoss::cross_entropy;
}

void check_targets(std::string_view op, std::span<const double> targets, std::int64_t classes, HeadLoss loss) {
  const auto is_good = [&](double target) {
    if (loss == HeadLoss::mse) return std::isfinite(target);
    if (loss == HeadLoss::binary_cross_entropy) return target >= 0 && target <= 1;
    return target >= 0 && target < static_cast<double>(classes) && target == std::floor(target);
  };
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!is_good(targets[i]))
      fail(ErrorCode::out_of_range, op, text({"examples[", i, "].label"}),
           {loss == HeadLoss::mse                    ? std::string("a finite number")
            : loss == HeadLoss::binary_cross_entropy ? std::string("a number from 0 to 1")
                                                     : text({"a label from 0 to ", classes - 1})},
           {targets[i]}, {{"index", static_cast<double>(i)}});
}

std::vector<std::size_t> training_order(std::size_t count, std::uint64_t seed, std::uint32_t epoch) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = count; i-- > 1;) {  // Fisher-Yates shuffle
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
      return layer >= config.stored_layers() - *layers;
    }
    return *layers > 0 && name.starts_with("encoder.norm.");
  };
  // Not biases that the family lacks: they remain 0.
  const std::map<std::string, Shape> all = model.state_shapes();
  for (const auto& [tensor_name, tensor] : model.tensors())
    for (const ParameterRef& piece : tensor.pieces)
      if (is_trained(piece.name)) shapes_.emplace(piece.name, all.at(piece.name));
}

StateTensors FineTuning::Trained::state_tensors() const {
  StateTensors tensors = model_.state_tensors();
  std::erase_if(tensors, [&](const auto& entry) { return !shapes_.contains(entry.first); });
  return tensors;
}

FineTuning::FineTuning(std::string_view op, EncoderModel& model, const FineTuningOptions& options)
    : op_(op),
      model_(model),
      loss_(check_fine_tuning(op, model, options)),
      first_layer_(options.layers ? std::optional(model.config().stored_layers() - *options.layers) : std::nullopt),
      learning_rate_(options.learning_rate),
      seed_(options.seed),
      steps_(options.steps),
      trained_(model, options.layers),
      modules_{trained_},
      optimizer_(modules_, adamw(options)) {}

ForwardRandom FineTuning::random() const {
  return {.training = true, .probabilities = &model_.config().dropout, .seed = seed_, .step = static_cast<std::uint64_t>(step_)};
}

void FineTuning::refuse(std::string_view what, double value) const {
  fail(ErrorCode::out_of_range, op_, text({what, " of step ", step_ + 1}), {"a finite number"}, {value}, "Try a smaller learning_rate");
}

double FineTuning::loss_of(const float* logits, std::span<const double> targets, float* gradient) const {
  const auto rows = static_cast<std::int64_t>(targets.size()), classes = model_.config().outputs();
  const TensorView view(logits, {rows, classes});
  if (loss_ == HeadLoss::cross_entropy || loss_ == HeadLoss::next_token) {
    const std::vector<std::int64_t> labels(targets.begin(), targets.end());
    return static_cast<double>(cross_entropy(view, labels, {}, gradient));
  }
  const std::vector<float> numbers(targets.begin(), targets.end());
  const TensorView wanted(numbers.data(), {rows, 1});
  return static_cast<double>(loss_ == HeadLoss::mse ? mse_loss(view, wanted, {}, gradient) : binary_cross_entropy(view, wanted, {}, gradient));
}

template <class Forward, class Backward>
double FineTuning::take_step(std::span<const double> targets, Forward forward, Backward backward) {
  const FloatEnvironment environment;
  std::vector<float> grad(targets.size() * static_cast<std::size_t>(model_.config().outputs()));
  Gradients& gradients = modules_.front().gradients();
  gradients.zero();
  gradients.reserve(trained_.parameter_shapes());
  const double loss = loss_of(forward(), targets, grad.data());
  if (!std::isfinite(loss)) refuse("the loss", loss);
  backward(grad.data(), gradients);
  const double norm = clip_grad_norm(modules_, kMaxNorm);
  if (!std::isfinite(norm)) refuse("the norm of the gradient", norm);
  optimizer_.set_learning_rate(linear_schedule(step_, {.learning_rate = learning_rate_, .steps = steps_}));
  optimizer_.step();
  ++step_;
  return loss;
}

double FineTuning::step(const ModelInputs& inputs, std::span<const double> targets) {
  const bool of_tokens = loss_ == HeadLoss::next_token;
  if (!of_tokens && first_layer_ == model_.config().stored_layers()) {
    AlignedFloats pooled(targets.size() * static_cast<std::size_t>(model_.config().hidden_size));
    pool(inputs, pooled.data());
    return step(std::span<const float>(pooled.data(), pooled.size()), targets);
  }
  const NextTokens next = of_tokens ? next_tokens(op_, targets, model_.config().outputs()) : NextTokens();
  const ModelKeepOptions keep{.of_head = true, .random = random(), .tokens = next.positions};
  const ModelPlan plan = model_.plan(op_, inputs, {.for_backward = true, .keep = keep, .logits = !of_tokens});
  check_memory(op_, [&] {
    counted({of_tokens ? std::ssize(next.ids) : std::ssize(targets), model_.config().outputs()}, "the gradient of the logits");
    model_.run_and_keep(plan, inputs, counted_buffers(plan.encoder), keep);
  });
  AlignedFloats hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
  std::unique_ptr<KeptModel> kept;
  const auto forward = [&] {
    kept = model_.run_and_keep(plan, inputs, {hidden.data(), {}, {}}, keep);
    return kept->result;
  };
  return take_step(of_tokens ? std::span<const double>(next.ids) : targets, forward, [&](const float* grad, Gradients& gradients) {
    model_.backward(*kept, grad, {.parameters = &gradients, .first_layer = first_layer_});
  });
}

double FineTuning::step(std::span<const float> pooled, std::span<const double> targets) {
  KeptHead kept{.given = pooled.data(), .sequences = static_cast<std::int64_t>(targets.size()), .random = random()};
  check_memory(op_, [&] { model_.run_head_and_keep(kept); });
  const auto forward = [&] {
    model_.run_head_and_keep(kept);
    return kept.logits;
  };
  return take_step(targets, forward, [&](const float* grad, Gradients& gradients) { model_.backward(kept, grad, gradients); });
}

void FineTuning::pool(const ModelInputs& inputs, float* pooled) const {
  const ModelPlan plan = model_.plan(op_, inputs, {});
  AlignedFloats hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
  model_.run(plan, inputs, {hidden.data(), {}, {}}, nullptr);
  pool_sequences(inputs, plan.encoder.E, hidden.data(), model_.config().classifier_pooling, pooled, plan.encoder.E);
}

Judgement FineTuning::judge_logits(const float* logits, std::span<const double> targets) const {
  const FloatEnvironment environment;
  const auto classes = static_cast<std::size_t>(model_.config().outputs());
  std::vector<float> unused(targets.size() * classes);
  Judgement judgement{.loss = loss_of(logits, targets, unused.data()) * static_cast<double>(targets.size())};
  if (loss_ == HeadLoss::mse) return judgement;
  judgement.right = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const float* const row = logits + i * classes;
    const bool is_right = loss_ == HeadLoss::binary_cross_entropy
                              ? (row[0] > 0) == (targets[i] > 0.5)
                              : std::max_element(row, row + classes) - row == static_cast<std::ptrdiff_t>(targets[i]);
    if (is_right) ++*judgement.right;
  }
  return judgement;
}

Judgement FineTuning::judge_next_tokens(const ModelInputs& inputs, std::span<const double> targets) const {
  constexpr std::size_t kRows = 16;  // limits the memory of logits
  const std::int64_t classes = model_.config().outputs();
  const NextTokens next = next_tokens(op_, targets, classes);
  const ModelPlan plan = model_.plan(op_, inputs, {.logits = false});
  const auto E = static_cast<std::size_t>(plan.encoder.E);
  AlignedFloats hidden(targets.size() * E);
  model_.run(plan, inputs, {hidden.data(), {}, {}}, nullptr);
  Judgement all{.right = 0};
  std::vector<float> rows(kRows * E), logits(kRows * static_cast<std::size_t>(classes));
  for (std::size_t first = 0; first < next.ids.size(); first += kRows) {
    const std::size_t count = std::min(kRows, next.ids.size() - first);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(hidden.data() + static_cast<std::size_t>(next.positions[first + i]) * E, E, rows.data() + i * E);
    model_.run_head(rows.data(), static_cast<std::int64_t>(count), logits.data());
    const Judgement part = judge_logits(logits.data(), std::span(next.ids).subspan(first, count));
    all.loss += part.loss;
    *all.right += *part.right;
  }
  return all;
}

Judgement FineTuning::judge(const ModelInputs& inputs, std::span<const double> targets) const {
  if (loss_ == HeadLoss::next_token) return judge_next_tokens(inputs, targets);
  const ModelPlan plan = model_.plan(op_, inputs, {});
  AlignedFloats hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
  std::vector<float> logits(targets.size() * static_cast<std::size_t>(model_.config().num_labels()));
  model_.run(plan, inputs, {hidden.data(), {}, {}}, logits.data());
  return judge_logits(logits.data(), targets);
}

Judgement FineTuning::judge(std::span<const float> pooled, std::span<const double> targets) const {
  KeptHead kept{.given = pooled.data(), .sequences = static_cast<std::int64_t>(targets.size())};
  check_memory(op_, [&] { model_.run_head_and_keep(kept); });
  model_.run_head_and_keep(kept);
  return judge_logits(kept.logits, targets);
}

}  // namespace attn::detail
