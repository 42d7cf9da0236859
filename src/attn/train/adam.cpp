#include "attn/train/adam.hpp"

#include <cmath>
#include <utility>

namespace attn {
namespace {

constexpr std::array<std::string_view, 2> kAdamSlots{"exp_avg", "exp_avg_sq"};

const AdamOptions& checked(std::string_view name, const AdamOptions& options) {
  for (std::size_t i = 0; i < 2; ++i)
    if (!(options.betas[i] >= 0 && options.betas[i] < 1))
      detail::fail(ErrorCode::config, name, detail::text({"betas[", i, "]"}), {"a number from 0 up to, not including, 1"}, {options.betas[i]});
  detail::check_at_least_0(name, "eps", options.eps);
  return options;
}

/// By squaring, because C libraries differ in the last bits of pow.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 != 0) result *= base;
  return result;
}

}  // namespace

Adam::Adam(std::string_view name, std::vector<ModuleRef> modules, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(modules), {.name = name,
                                     .learning_rate = checked(name, options).learning_rate,
                                     .weight_decay = options.weight_decay,
                                     .groups = options.groups,
                                     .slots = kAdamSlots,
                                     .has_step = true}),
      betas_(options.betas),
      eps_(options.eps),
      decoupled_(decoupled) {}

Adam::Adam(std::vector<ModuleRef> modules, const AdamOptions& options) : Adam("Adam", std::move(modules), options, false) {}

AdamW::AdamW(std::vector<ModuleRef> modules, const AdamWOptions& options)
    : Adam("AdamW", std::move(modules),
           {.learning_rate = options.learning_rate,
            .betas = options.betas,
            .eps = options.eps,
            .weight_decay = options.weight_decay,
            .groups = options.groups},
           true) {}

// As in PyTorch, factors that all numbers share are float64 and rounded once. Each operation is exact or rounded as in
// IEEE 754, so vectorization changes no bit.
void Adam::update(const Rates& rates, const Numbers& x) const noexcept {
  const double lr = rates.learning_rate, correction = 1 - power(betas_[0], rates.step), correction_sq = 1 - power(betas_[1], rates.step);
  const auto step = static_cast<float>(-(lr / correction)), root = static_cast<float>(std::sqrt(correction_sq)), eps = static_cast<float>(eps_);
  const auto share = static_cast<float>(1 - betas_[0]), beta_sq = static_cast<float>(betas_[1]), share_sq = static_cast<float>(1 - betas_[1]);
  const float* const g = x.gradient;
  float *const p = x.values, *const m = x.slots[0], *const v = x.slots[1];
  const auto move = [&](std::size_t i, float gradient) {
    // As torch.lerp: from the nearer end.
    m[i] = share < 0.5F ? m[i] + share * (gradient - m[i]) : gradient + (share - 1) * (gradient - m[i]);
    v[i] = beta_sq * v[i] + share_sq * gradient * gradient;
    p[i] += step * m[i] / (std::sqrt(v[i]) / root + eps);
  };
  if (rates.weight_decay == 0) {  // skipped, because 0 · infinity is NaN
    for (std::size_t i = 0; i < x.count; ++i) move(i, g[i]);
  } else if (decoupled_) {
    const auto keep = static_cast<float>(1 - lr * rates.weight_decay);
    for (std::size_t i = 0; i < x.count; ++i) {
      p[i] *= keep;
      move(i, g[i]);
    }
  } else {
    const auto decay = static_cast<float>(rates.weight_decay);
    for (std::size_t i = 0; i < x.count; ++i) move(i, g[i] + decay * p[i]);
  }
}

}  // namespace attn
