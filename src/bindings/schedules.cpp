#include "attn/train/schedules.hpp"

#include "define.hpp"

namespace attn::bindings {
namespace {

template <class Options, class More>
Options read(Arguments& arguments, std::int64_t& step, More more) {
  Options options;
  arguments.require("step", step);
  arguments.require_group("options", [&] {
    arguments.require("learningRate", options.learning_rate);
    arguments.option("warmup", options.warmup);
    arguments.require("steps", options.steps);
    more(options);
  });
  return options;
}

void linear_schedule(Arguments& arguments, Work<> work) {
  std::int64_t step = 0;
  const auto options = read<LinearScheduleOptions>(arguments, step, [](LinearScheduleOptions&) {});
  work([&](Result& result) { result.set_number(attn::linear_schedule(step, options)); });
}

void cosine_schedule(Arguments& arguments, Work<> work) {
  std::int64_t step = 0;
  const auto options =
      read<CosineScheduleOptions>(arguments, step, [&](CosineScheduleOptions& cosine) { arguments.option("minimum", cosine.minimum); });
  work([&](Result& result) { result.set_number(attn::cosine_schedule(step, options)); });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_schedules) {
  using namespace attn::bindings;
  define_function<linear_schedule>("linearSchedule", "number");
  define_function<cosine_schedule>("cosineSchedule", "number");
}
