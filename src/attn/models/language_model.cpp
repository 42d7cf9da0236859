#include "attn/models/language_model.hpp"

#include <algorithm>

#include "attn/ops/elementary.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

ModelInputs inputs_of(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids) {
  model.check_task(op, Task::text_generation);
  if (ids.empty()) fail(ErrorCode::argument, op, "the text", {"at least one token"}, {"none"}, "The tokenizer adds no token at the start of a text");
  return {.shape = {1, std::ssize(ids)}, .input_ids = ids};
}

}  // namespace

std::vector<float> next_logits(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids, KeyValueCache* cache) {
  const ModelInputs inputs = inputs_of(op, model, ids);
  const ModelPlan plan = model.plan(op, inputs, {.logits = OutputLogits::last, .cache = cache});
  std::vector<float> hidden(static_cast<std::size_t>(plan.encoder.L * plan.encoder.E)), logits(static_cast<std::size_t>(model.config().outputs()));
  model.run(plan, inputs, {hidden.data(), {}, {}}, logits.data());
  check_logits(op, logits);
  return logits;
}

std::vector<TokenScore> score_tokens(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids) {
  const ModelInputs inputs = inputs_of(op, model, ids);
  const ModelPlan plan = model.plan(op, inputs, {.logits = false});
  constexpr std::int64_t kRows = 16;  // logits of a long text would take far more memory than the rest
  const std::int64_t E = plan.encoder.E, V = model.config().outputs(), rows = plan.encoder.L - 1;
  check_memory(op, [&] {
    float *const hidden = counted(plan.encoder.output, "hidden states"), *const logits = counted({kRows, V}, "logits");
    model.run(plan, inputs, {hidden, {}, {}}, nullptr);
    model.run_head(hidden, std::min(kRows, rows), logits);
  });
  std::vector<float> hidden(static_cast<std::size_t>(plan.encoder.L * E)), logits(static_cast<std::size_t>(kRows * V));
  model.run(plan, inputs, {hidden.data(), {}, {}}, nullptr);
  std::vector<TokenScore> scores(static_cast<std::size_t>(rows));
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t count = std::min(kRows, rows - first);
    model.run_head(hidden.data() + first * E, count, logits.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<const float> row(logits.data() + i * V, static_cast<std::size_t>(V));
      check_logits(op, row);
      scores[static_cast<std::size_t>(first + i)] = score_token(row, ids[static_cast<std::size_t>(first + i + 1)]);
    }
  }
  return scores;
}

double perplexity(const std::vector<TokenScore>& scores) {
  const FloatEnvironment environment;
  double sum = 0;
  for (const TokenScore& score : scores) sum += score.log_probability;
  return scores.empty() ? 1 : exp_of(-sum / static_cast<double>(scores.size()));
}

}  // namespace attn::detail
