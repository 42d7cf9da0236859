#include "attn/io/json.hpp"
#include "attn/models/family.hpp"
#include "token_model.hpp"

namespace attn::bindings {
namespace {

/// (sequences,E).
std::span<const float> values_of(const TensorView& pooled) { return {pooled.data, static_cast<std::size_t>(pooled.shape[0] * pooled.shape[1])}; }

std::vector<double> targets_of(const TensorView& given) { return {given.data, given.data + given.shape[0]}; }

/// Checks all targets before anything changes. Begins a new head if labels are given. The result's name is the class in
/// transformers.
void begin_fine_tuning(Arguments& arguments, Work<TokenModel> work) {
  const TensorView targets = arguments.tensor("targets");
  std::span<const std::uint8_t> labels;
  arguments.option("labels", labels, "a list in JSON");
  detail::FineTuningOptions options;
  arguments.require_group("options", [&] {
    arguments.require("steps", options.steps);
    arguments.require("learningRate", options.learning_rate);
    arguments.require("weightDecay", options.weight_decay);
    arguments.option("layers", options.layers);
    arguments.option("seed", options.seed);
  });
  work([&](TokenModel& self, Result& result) {
    constexpr std::string_view kOp = "fineTune";
    const detail::ModelConfig& config = self.config();
    std::vector<std::string> names;
    if (!labels.empty()) {
      const detail::Json list = detail::parse_json("labels", labels, labels.size());
      for (const detail::Json& name : *list.array()) names.push_back(*name.string());
    }
    const bool is_new = !names.empty();
    const std::int64_t count = is_new ? std::ssize(names) : config.num_labels();
    const detail::HeadLoss loss = detail::check_fine_tuning(kOp, self.model(), options, is_new ? std::optional<std::int64_t>(count) : std::nullopt);
    if (loss != detail::HeadLoss::next_token) detail::check_targets(kOp, targets_of(targets), count, loss);
    if (is_new) self.model().set_head(std::move(names), options.seed);
    self.tuning = std::make_shared<detail::FineTuning>(kOp, self.model(), options);
    *result.add(config.family->architecture, Shape{1}) = 0;
  });
}

void end_fine_tuning(Arguments&, Work<TokenModel> work) {
  work([&](TokenModel& self, Result&) { self.tuning.reset(); });
}

void training_order(Arguments& arguments, Work<TokenModel> work) {
  std::int64_t count = 0, epoch = 0;
  std::uint64_t seed = 0;
  arguments.require("count", count);
  arguments.require("epoch", epoch);
  arguments.option("seed", seed);
  work([&](TokenModel&, Result& result) {
    float* to = result.add(Shape{count});
    for (const std::size_t place : detail::training_order(static_cast<std::size_t>(count), seed, static_cast<std::uint32_t>(epoch)))
      *to++ = static_cast<float>(place);
  });
}

void fine_tune_step(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  const TensorView targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) { result.set_number(self.tuning->step(batch.inputs(), targets_of(targets))); });
}

void fine_tune_head_step(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pooled = arguments.tensor("pooled"), targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) { result.set_number(self.tuning->step(values_of(pooled), targets_of(targets))); });
}

void pool_for_head(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  work(
      [&](TokenModel& self, Result& result) { self.tuning->pool(batch.inputs(), result.add(Shape{batch.ids.shape[0], self.config().hidden_size})); });
}

void add(const detail::Judgement& judgement, Result& result) {
  result.set_number(judgement.loss);
  if (judgement.right) *result.add("right", Shape{1}) = static_cast<float>(*judgement.right);
}

void judge(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  const TensorView targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) { add(self.tuning->judge(batch.inputs(), targets_of(targets)), result); });
}

void judge_head(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pooled = arguments.tensor("pooled"), targets = arguments.tensor("targets");
  work([&](TokenModel& self, Result& result) { add(self.tuning->judge(values_of(pooled), targets_of(targets)), result); });
}

}  // namespace

void define_fine_tuning(TokenModelClass& model) {
  model.method<begin_fine_tuning>("beginFineTuning", "raw")
      .method<end_fine_tuning>("endFineTuning", "none")
      .method<training_order>("trainingOrder", "raw")
      .method<fine_tune_step>("fineTuneStep", "raw")
      .method<fine_tune_head_step>("fineTuneHeadStep", "raw")
      .method<pool_for_head>("poolForHead", "raw")
      .method<judge>("judge", "raw")
      .method<judge_head>("judgeHead", "raw");
}

}  // namespace attn::bindings
