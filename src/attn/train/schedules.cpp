#include "attn/train/schedules.hpp"

#include <cmath>
#include <numbers>
#include <string_view>

#include "attn/ops/elementary.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {
namespace {

void check(std::string_view op, std::int64_t step, double learning_rate, std::int64_t warmup, std::int64_t steps) {
  if (!(learning_rate > 0) || !std::isfinite(learning_rate))
    detail::fail(ErrorCode::config, op, "learning_rate", {"a finite number above 0"}, {learning_rate});
  if (steps < 1) detail::fail(ErrorCode::config, op, "steps", {"a whole number of at least 1"}, {steps});
  if (warmup < 0 || warmup > steps) detail::fail(ErrorCode::config, op, "warmup", {"a whole number from 0 to ", steps}, {warmup});
  if (step < 0) detail::fail(ErrorCode::argument, op, "step", {"a whole number of at least 0"}, {step});
}

double ratio(std::int64_t part, std::int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

}  // namespace

double linear_schedule(std::int64_t step, const LinearScheduleOptions& options) {
  const detail::FloatEnvironment environment;
  const auto& [learning_rate, warmup, steps] = options;
  check("linear_schedule", step, learning_rate, warmup, steps);
  if (step < warmup) return learning_rate * ratio(step, warmup);
  return step < steps ? learning_rate * ratio(steps - step, steps - warmup) : 0;
}

double cosine_schedule(std::int64_t step, const CosineScheduleOptions& options) {
  const detail::FloatEnvironment environment;
  const auto& [learning_rate, warmup, steps, minimum] = options;
  check("cosine_schedule", step, learning_rate, warmup, steps);
  if (!(minimum >= 0 && minimum <= learning_rate))
    detail::fail(ErrorCode::config, "cosine_schedule", "minimum", {"a number from 0 to learning_rate ", learning_rate}, {minimum});
  if (step < warmup) return learning_rate * ratio(step, warmup);
  if (step >= steps) return minimum;
  return minimum + (learning_rate - minimum) * 0.5 * (1 + detail::sin_cos_of(std::numbers::pi * ratio(step - warmup, steps - warmup)).cos);
}

}  // namespace attn
