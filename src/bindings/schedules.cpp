#include "attn/train/schedules.hpp"

#include "define.hpp"

namespace attn::bindings {
namespace {

auto linear_schedule(Arguments& arguments) {
  std::int64_t step = 0;
  LinearScheduleOptions options;
  arguments.require("step", step);
  arguments.require_group("options", [&] {
    arguments.require("learningRate", options.learning_rate);
    arguments.option("warmup", options.warmup);
    arguments.require("steps", options.steps);
  });
  return [=](Result& result) { result.set_number(attn::linear_schedule(step, options)); };
}

auto cosine_schedule(Arguments& arguments) {
  std::int64_t step = 0;
  CosineScheduleOptions options;
  arguments.require("step", step);
  arguments.require_group("options", [&] {
    arguments.require("learningRate", options.learning_rate);
    arguments.option("warmup", options.warmup);
    arguments.require("steps", options.steps);
    arguments.option("minimum", options.minimum);
  });
  return [=](Result& result) { result.set_number(attn::cosine_schedule(step, options)); };
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_schedules) {
  using namespace attn::bindings;
  define_function<linear_schedule>("linearSchedule", "number");
  define_function<cosine_schedule>("cosineSchedule", "number");
}
