#include "attn/train/sgd.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace attn {
namespace {

constexpr std::array<std::string_view, 1> kSgdSlots{"momentum_buffer"};

const SGDOptions& checked(const SGDOptions& options) {
  detail::check_at_least_0("SGD", "momentum", options.momentum);
  if (!std::isfinite(options.dampening)) detail::fail(ErrorCode::config, "SGD", "dampening", {"a finite number"}, {options.dampening});
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0))
    detail::fail(ErrorCode::config, "SGD", "nesterov", {"false, or a momentum above 0 and a dampening of 0"},
                 {"true with momentum ", options.momentum, " and dampening ", options.dampening});
  return options;
}

}  // namespace

SGD::SGD(std::vector<ModuleRef> modules, const SGDOptions& options)
    : Optimizer(std::move(modules), {.name = "SGD",
                                     .learning_rate = checked(options).learning_rate,
                                     .weight_decay = options.weight_decay,
                                     .groups = options.groups,
                                     .slots = std::span(kSgdSlots).first(options.momentum != 0 ? 1 : 0),
                                     .has_step = false}),
      momentum_(options.momentum),
      dampening_(options.dampening),
      nesterov_(options.nesterov) {}

void SGD::update(const Rates& rates, const Numbers& x) const noexcept {
  const auto step = static_cast<float>(-rates.learning_rate), decay = static_cast<float>(rates.weight_decay);
  const auto momentum = static_cast<float>(momentum_), share = static_cast<float>(1 - dampening_);
  const bool is_first = rates.step == 1;
  // Skips a decay of 0, because 0 · infinity is NaN.
  const auto gradient_at = [&](std::size_t i) { return decay != 0 ? x.gradient[i] + decay * x.values[i] : x.gradient[i]; };
  float *const p = x.values, *const b = x.slots[0];
  if (b == nullptr) {
    for (std::size_t i = 0; i < x.count; ++i) p[i] += step * gradient_at(i);
    return;
  }
  for (std::size_t i = 0; i < x.count; ++i) {
    const float g = gradient_at(i);
    b[i] = is_first ? g : momentum * b[i] + share * g;
    p[i] += step * (nesterov_ ? g + momentum * b[i] : b[i]);
  }
}

}  // namespace attn
