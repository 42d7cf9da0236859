#include <algorithm>
#include <cmath>
#include <set>

#include "attn/models/fine_tuning.hpp"
#include "attn/models/text_model_parts.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

constexpr std::string_view kFineTune = "fine_tune";

void check_fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options) {
  if (examples.empty()) detail::fail(ErrorCode::argument, kFineTune, "examples", {"at least one example"}, {"empty"});
  if (options.epochs < 1) detail::fail(ErrorCode::config, kFineTune, "epochs", {"a number of at least 1"}, {options.epochs});
  detail::check_batch_size(kFineTune, options.batch_size);
  if (!(options.validation >= 0 && options.validation < 1))
    detail::fail(ErrorCode::config, kFineTune, "validation", {"a number from 0 up to, not including, 1"}, {options.validation});
  for (std::size_t i = 0; i < options.labels.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (options.labels[i] == options.labels[before])
        detail::fail(ErrorCode::argument, kFineTune, detail::text({"labels[", i, "]"}), {"another label"}, {options.labels[i], " again"});
}

std::vector<std::string> labels_of(const std::vector<FineTuneExample>& examples, const std::vector<std::string>& asked,
                                   const std::vector<std::string>& model) {
  if (!asked.empty()) return asked;
  if (!model.empty()) return model;
  std::set<std::string> names;
  std::int64_t most = 1;  // at least two classes
  for (const FineTuneExample& example : examples) {
    if (const auto* name = std::get_if<std::string>(&example.label)) names.insert(*name);
    if (const auto* number = std::get_if<std::int64_t>(&example.label)) most = std::max(most, *number);
  }
  if (!names.empty()) return {names.begin(), names.end()};
  if (const std::int64_t count = std::ssize(examples); most > count && most > 1)
    detail::fail(ErrorCode::out_of_range, kFineTune, "labels", {"at most ", count + 1, " for ", count, " examples"}, {"has ", most + 1, " entries"});
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i <= most; ++i) labels.push_back(detail::text({"LABEL_", i}));
  return labels;
}

std::vector<double> targets_of(const std::vector<FineTuneExample>& examples, const std::vector<std::string>& labels) {
  std::vector<double> targets;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const std::string where = detail::text({"examples[", i, "].label"});
    double target = 0;
    if (const auto* number = std::get_if<double>(&examples[i].label))
      target = *number;
    else if (const auto* name = std::get_if<std::string>(&examples[i].label))
      target = static_cast<double>(detail::label_of(kFineTune, where, labels, *name));
    else
      target = static_cast<double>(std::get<std::int64_t>(examples[i].label));
    targets.push_back(target);
  }
  return targets;
}

struct TrainingData {
  std::vector<detail::TextRow> rows = {};
  std::vector<std::vector<double>> targets = {};  ///< by example; of a language model by token
  bool of_tokens = false;
  std::vector<std::size_t> order = {};  ///< of examples; the first are held out
  std::size_t held_out = 0, batch_size = 1;

  std::span<const std::size_t> validating() const { return std::span(order).first(held_out); }
  std::span<const std::size_t> training() const { return std::span(order).subspan(held_out); }
  std::int64_t steps_per_epoch() const { return static_cast<std::int64_t>((training().size() - 1) / batch_size + 1); }
};

TrainingData divided(std::size_t examples, const FineTuneOptions& options) {
  return {.order = detail::training_order(examples, options.seed, 0),
          .held_out = std::min(examples - 1, static_cast<std::size_t>(std::llround(options.validation * static_cast<double>(examples)))),
          .batch_size = static_cast<std::size_t>(options.batch_size)};
}

template <class RowOf>
std::vector<detail::TextRow> rows_of(const std::vector<FineTuneExample>& examples, RowOf row_of) {
  std::vector<detail::TextRow> rows;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const FineTuneExample& example = examples[i];
    rows.push_back(detail::naming_text(detail::text({"examples[", i, "]"}), i, [&] {
      return example.text_pair ? row_of(std::pair(example.text, *example.text_pair)) : row_of(example.text);
    }));
    rows.back().index = i;
  }
  return rows;
}

void check_members(const std::vector<FineTuneExample>& examples, bool of_tokens) {
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const FineTuneExample& example = examples[i];
    const auto refuse = [&](std::string_view member, const char* model) {
      detail::fail(ErrorCode::argument, kFineTune, detail::text({"examples[", i, "].", member}), {"no ", member, " for ", model}, {"given"});
    };
    const auto* const number = std::get_if<std::int64_t>(&example.label);
    if (of_tokens && !(number != nullptr && *number == 0)) refuse("label", "a language model");
    if (of_tokens && example.text_pair) refuse("text_pair", "a language model");
    if (!of_tokens && !example.prompt.empty()) refuse("prompt", "a classifier");
  }
}

/// Targets are next tokens, from the first token that contains more than the prompt.
template <class Encode>
void add_language_rows(const std::vector<FineTuneExample>& examples, TrainingData& data, Encode encode) {
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto& [text, label, pair, prompt] = examples[i];
    const std::string name = detail::text({"examples[", i, "]"});
    EncodedTexts encoding = detail::naming_text(name, i, [&] { return encode(prompt + text); });
    const TokenOffsets& offsets = encoding.offsets[0];
    const auto is_of_text = [&](const auto& offset) { return offset && offset->second > static_cast<std::int64_t>(prompt.size()); };
    const auto first = static_cast<std::size_t>(std::find_if(offsets.begin(), offsets.end(), is_of_text) - offsets.begin());
    const std::vector<std::int32_t>& ids = encoding.input_ids;
    if (first == ids.size() || ids.size() == 1)
      detail::fail(ErrorCode::argument, kFineTune, name, {"a text with at least one token to predict"}, {"too short"},
                   encoding.truncated[0] ? "The prompt alone is longer than the model's positions" : "The first token has none before it");
    std::vector<double> next(ids.size(), detail::kIgnoreIndex);
    for (std::size_t token = std::max<std::size_t>(first, 1); token < ids.size(); ++token) next[token - 1] = ids[token];
    data.rows.push_back({i, std::move(encoding.input_ids), std::vector<std::int32_t>(next.size()), encoding.truncated[0]});
    data.targets.push_back(std::move(next));
  }
}

/// If only the head is trained, each text passes through the encoder once.
class Trainer {
 public:
  Trainer(detail::FineTuning& tuning, const TrainingData& data, std::int64_t width, bool head_only)
      : tuning_(tuning), data_(data), width_(static_cast<std::size_t>(width)), head_only_(head_only) {
    if (!head_only) return;
    pooled_.resize(data.rows.size() * width_);
    for_each_batch(data.order, [&](const std::vector<detail::TextRow>& rows) {
      std::vector<float> part(rows.size() * width_);
      tuning_.pool(detail::TextBatch(std::span(rows)).inputs(), part.data());
      for (std::size_t i = 0; i < rows.size(); ++i) std::copy_n(part.data() + i * width_, width_, pooled_.data() + rows[i].index * width_);
    });
  }

  double step(std::span<const std::size_t> batch) {
    const std::vector<detail::TextRow> rows = rows_at(batch);
    const std::vector<double> targets = targets_at(rows);
    return head_only_ ? tuning_.step(pooled_at(rows), targets) : tuning_.step(detail::TextBatch(std::span(rows)).inputs(), targets);
  }

  /// Adds the number of held-out examples, or tokens, to count.
  detail::Judgement judge(double& count) const {
    detail::Judgement sum;
    for_each_batch(data_.validating(), [&](const std::vector<detail::TextRow>& rows) {
      const std::vector<double> targets = targets_at(rows);
      count += static_cast<double>(std::ssize(targets) - (data_.of_tokens ? std::count(targets.begin(), targets.end(), detail::kIgnoreIndex) : 0));
      const detail::Judgement part =
          head_only_ ? tuning_.judge(pooled_at(rows), targets) : tuning_.judge(detail::TextBatch(std::span(rows)).inputs(), targets);
      sum.loss += part.loss;
      if (part.right) sum.right = sum.right.value_or(0) + *part.right;
    });
    return sum;
  }

 private:
  template <class Run>
  void for_each_batch(std::span<const std::size_t> examples, const Run& run) const {
    for (std::size_t first = 0; first < examples.size(); first += data_.batch_size)
      run(rows_at(examples.subspan(first, std::min(data_.batch_size, examples.size() - first))));
  }
  /// The longest first.
  std::vector<detail::TextRow> rows_at(std::span<const std::size_t> batch) const {
    std::vector<detail::TextRow> rows;
    for (const std::size_t example : batch) rows.push_back(data_.rows[example]);
    std::stable_sort(rows.begin(), rows.end(), [](const detail::TextRow& a, const detail::TextRow& b) { return a.ids.size() > b.ids.size(); });
    return rows;
  }
  std::vector<double> targets_at(std::span<const detail::TextRow> rows) const {
    std::vector<double> targets;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double>& own = data_.targets[rows[i].index];
      targets.insert(targets.end(), own.begin(), own.end());
      if (data_.of_tokens) targets.resize((i + 1) * rows.front().ids.size(), detail::kIgnoreIndex);
    }
    return targets;
  }
  std::vector<float> pooled_at(std::span<const detail::TextRow> rows) const {
    std::vector<float> pooled;
    for (const detail::TextRow& row : rows) {
      const float* const from = pooled_.data() + row.index * width_;
      pooled.insert(pooled.end(), from, from + width_);
    }
    return pooled;
  }

  detail::FineTuning& tuning_;
  const TrainingData& data_;
  const std::size_t width_;
  const bool head_only_;
  std::vector<float> pooled_;  // (examples,E)
};

void validate(const Trainer& trainer, std::size_t held_out, FineTuneProgress& progress, FineTuneResult& result) {
  if (held_out == 0) return;
  double count = 0;
  const detail::Judgement judgement = trainer.judge(count);
  progress.validation_loss = judgement.loss / count;
  if (judgement.right) result.validation_accuracy = progress.validation_accuracy = static_cast<double>(*judgement.right) / count;
}

FineTuneResult train(Trainer& trainer, const TrainingData& data, const FineTuneOptions& options) {
  const std::span<const std::size_t> training = data.training();
  const std::int64_t per_epoch = data.steps_per_epoch();
  FineTuneResult result;
  FineTuneProgress progress{.steps = options.epochs * per_epoch};
  for (progress.epoch = 1; progress.epoch <= options.epochs; ++progress.epoch) {
    std::vector<std::size_t> now;
    for (const std::size_t place : detail::training_order(training.size(), options.seed, static_cast<std::uint32_t>(progress.epoch)))
      now.push_back(training[place]);
    double sum = 0;
    for (std::int64_t i = 0; i < per_epoch; ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * data.batch_size;
      progress.loss = trainer.step(std::span(now).subspan(first, std::min(data.batch_size, now.size() - first)));
      ++progress.step;
      const detail::FloatEnvironment environment;
      sum += progress.loss;
      result.loss = sum / static_cast<double>(i + 1);
      if (i + 1 == per_epoch) validate(trainer, data.held_out, progress, result);
      if (options.on_progress && !options.on_progress(progress)) return result;
      progress.validation_loss = progress.validation_accuracy = std::nullopt;
    }
  }
  return result;
}

}  // namespace

FineTuneResult TextModel::fine_tune(const std::vector<FineTuneExample>& examples, const FineTuneOptions& options) {
  EncoderModel& model = encoder();
  check_fine_tune(examples, options);
  model.check_gradients(kFineTune);
  const bool of_tokens = model.config().task == Task::text_generation, head_only = options.layers == 0;
  check_members(examples, of_tokens);
  if (of_tokens && !options.labels.empty()) detail::fail(ErrorCode::argument, kFineTune, "labels", {"no labels for a language model"}, {"given"});
  const std::vector<std::string> before = detail::text_labels(model);
  const std::vector<std::string> labels = of_tokens ? before : labels_of(examples, options.labels, before);
  const bool is_new = labels != before;
  TrainingData data = divided(examples.size(), options);
  data.of_tokens = of_tokens;
  const detail::FineTuningOptions given{.steps = options.epochs * data.steps_per_epoch(),
                                        .learning_rate = options.learning_rate.value_or(head_only ? 1e-3 : 5e-5),
                                        .weight_decay = options.weight_decay,
                                        .layers = options.layers,
                                        .seed = options.seed};
  const detail::HeadLoss loss =
      detail::check_fine_tuning(kFineTune, model, given, is_new ? std::optional<std::int64_t>(std::ssize(labels)) : std::nullopt);
  const TokenizeOptions limited = parts_->limited({});
  if (of_tokens) {
    add_language_rows(examples, data, [&](const std::string& text) { return parts_->encode(std::vector{text}, 0, 1, limited); });
  } else {
    const std::vector<double> targets = targets_of(examples, labels);
    detail::check_targets(kFineTune, targets, std::ssize(labels), loss);
    for (const double target : targets) data.targets.push_back({target});
    data.rows = rows_of(examples, [&](const auto& text) { return parts_->row(text, 0, limited); });
  }
  if (is_new) model.set_head(labels, options.seed);
  detail::FineTuning tuning(kFineTune, model, given);
  Trainer trainer(tuning, data, model.config().hidden_size, head_only && !of_tokens);
  return train(trainer, data, options);
}

}  // namespace attn
