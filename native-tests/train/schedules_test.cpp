#include "attn/train/schedules.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/golden.hpp"
#include "support/matchers.hpp"

namespace attn::test {

TEST_CASE("schedules with warm-up give the learning rates of transformers", "[train][schedules][goldens]") {
  const GoldenFile file = read_golden(testdata("optimizers.safetensors"));
  const nlohmann::json cases = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
  int count = 0;
  for (const nlohmann::json& entry : cases) {
    const GoldenCase golden(file, entry);
    if (!golden.op().ends_with("_schedule")) continue;
    golden.check_names({}, {"learningRate", "warmup", "steps", "minimum"});
    INFO(golden.name());
    ++count;
    const double learning_rate = golden.option("learningRate", 0.0);
    const std::int64_t warmup = golden.option("warmup", std::int64_t{-1}), steps = golden.option("steps", std::int64_t{-1});
    const Array high = golden.tensor("expected.high"), low = golden.tensor("expected.low");
    REQUIRE(high.data.size() == static_cast<std::size_t>(steps));
    for (std::int64_t step = 0; step < steps; ++step) {
      INFO("step " << step);
      const auto at = static_cast<std::size_t>(step);
      const double expected = static_cast<double>(high.data[at]) + static_cast<double>(low.data[at]);
      const double got = golden.op() == "linear_schedule" ? linear_schedule(step, {learning_rate, warmup, steps})
                                                          : cosine_schedule(step, {learning_rate, warmup, steps, golden.option("minimum", 0.0)});
      CHECK(std::abs(got - expected) <= 1e-14 * learning_rate);
    }
  }
  CHECK(count == 9);
}

TEST_CASE("schedules keep their final rate", "[train][schedules]") {
  for (const std::int64_t step : {10, 11, 15, 1'000'000'000}) {
    CHECK(linear_schedule(step, {.learning_rate = 0.1, .warmup = 2, .steps = 10}) == 0);
    CHECK(cosine_schedule(step, {.learning_rate = 0.1, .warmup = 2, .steps = 10}) == 0);
    CHECK(cosine_schedule(step, {.learning_rate = 0.1, .warmup = 2, .steps = 10, .minimum = 0.01}) == 0.01);
  }
  CHECK(linear_schedule(0, {.learning_rate = 0.1, .warmup = 0, .steps = 10}) == 0.1);
  CHECK(cosine_schedule(0, {.learning_rate = 0.1, .warmup = 0, .steps = 10}) == 0.1);
  CHECK(cosine_schedule(2, {.learning_rate = 0.1, .warmup = 2, .steps = 10}) == 0.1);
}

TEST_CASE("schedules refuse invalid arguments", "[train][schedules][errors]") {
  const auto both = [](ErrorCode code, const char* argument, std::int64_t step, double learning_rate, std::int64_t warmup, std::int64_t steps) {
    check_error({code, "linear_schedule", argument, {}}, [&] { linear_schedule(step, {learning_rate, warmup, steps}); });
    check_error({code, "cosine_schedule", argument, {}}, [&] { cosine_schedule(step, {learning_rate, warmup, steps}); });
  };
  for (const double rate : {0.0, -1.0, static_cast<double>(kNaN), static_cast<double>(kInfinity)})
    both(ErrorCode::config, "learning_rate", 0, rate, 0, 1);
  both(ErrorCode::config, "steps", 0, 1, 0, 0);
  both(ErrorCode::config, "warmup", 0, 1, -1, 5);
  both(ErrorCode::config, "warmup", 0, 1, 6, 5);
  both(ErrorCode::argument, "step", -1, 1, 0, 5);
  for (const double minimum : {-0.1, 1.5, static_cast<double>(kNaN)})
    check_error({ErrorCode::config, "cosine_schedule", "minimum", {}},
                [&] { cosine_schedule(0, {.learning_rate = 1, .steps = 5, .minimum = minimum}); });
}

}  // namespace attn::test
