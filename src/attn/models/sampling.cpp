#include "attn/models/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attn/kernels/philox.hpp"
#include "attn/ops/elementary.hpp"
#include "attn/tensor/error.hpp"
#include "attn/tensor/float_environment.hpp"

// In float64 without libm, so that the same logits give the same tokens everywhere.
namespace attn::detail {
namespace {

constexpr double kRemoved = -std::numeric_limits<double>::infinity();

void softmax(std::vector<double>& scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = score == kRemoved ? 0 : exp_of(score - most);
  for (double& score : scores) score /= sum;
}

std::vector<double> probabilities_of(std::vector<double> scores) {
  softmax(scores);
  return scores;
}

void penalize(std::vector<double>& scores, std::span<const std::int64_t> before, double penalty) {
  std::vector<bool> seen(scores.size());
  for (const std::int64_t id : before) {
    const auto at = static_cast<std::size_t>(id);
    if (!seen[at]) scores[at] = scores[at] < 0 ? scores[at] * penalty : scores[at] / penalty;
    seen[at] = true;
  }
}

/// The `count` largest first, of equal scores the lower id; others in any order. std::sort would take ten times as many bytes of code as a heap.
std::vector<std::uint32_t> in_order(const std::vector<double>& scores, std::size_t count) {
  std::vector<std::uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto after = [&](std::uint32_t a, std::uint32_t b) { return scores[a] < scores[b] || (scores[a] == scores[b] && a > b); };
  std::make_heap(order.begin(), order.end(), after);
  const auto end = order.end();
  for (std::size_t i = 0; i < count; ++i) std::pop_heap(order.begin(), end - static_cast<std::ptrdiff_t>(i), after);
  std::reverse(order.begin(), end);
  return order;
}

void keep_top_k(std::vector<double>& scores, std::size_t k) {
  if (k >= scores.size()) return;
  const double least = scores[in_order(scores, k)[k - 1]];
  for (double& score : scores)
    if (score < least) score = kRemoved;
}

void keep_top_p(std::vector<double>& scores, double top_p) {
  const std::vector<double> probabilities = probabilities_of(scores);
  const std::vector<std::uint32_t> order = in_order(scores, scores.size());
  double sum = 0;
  for (std::size_t i = order.size(); --i > 0;) {
    sum += probabilities[order[i]];
    if (sum > 1 - top_p) return;
    scores[order[i]] = kRemoved;
  }
}

void keep_min_p(std::vector<double>& scores, double min_p) {
  const std::vector<double> probabilities = probabilities_of(scores);
  const double least = min_p * *std::max_element(probabilities.begin(), probabilities.end());
  for (std::size_t id = 0; id < scores.size(); ++id)
    if (probabilities[id] < least) scores[id] = kRemoved;
}

std::vector<double> processed(std::span<const float> logits, std::span<const std::int64_t> before, const SamplingOptions& options) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (options.repetition_penalty != 1) penalize(scores, before, options.repetition_penalty);
  if (!options.do_sample) return scores;
  for (double& score : scores) score /= options.temperature;
  if (options.top_k > 0) keep_top_k(scores, static_cast<std::size_t>(options.top_k));
  if (options.top_p < 1) keep_top_p(scores, options.top_p);
  if (options.min_p > 0) keep_min_p(scores, options.min_p);
  return scores;
}

struct LogSum {
  double most, log_sum;

  explicit LogSum(std::span<const float> logits) : most(static_cast<double>(*std::max_element(logits.begin(), logits.end()))) {
    double sum = 0;
    for (const float logit : logits) sum += exp_of(static_cast<double>(logit) - most);
    log_sum = log_of(sum);
  }
  double log_probability(float logit) const { return static_cast<double>(logit) - most - log_sum; }
  TokenChoice choice(std::span<const float> logits, std::size_t id) const {
    return {static_cast<std::int64_t>(id), logits[id], static_cast<float>(exp_of(log_probability(logits[id])))};
  }
};

}  // namespace

void check_sampling(std::string_view op, const SamplingOptions& options) {
  const auto check = [&](bool fits, const char* name, const char* expected, double got) {
    if (!fits) fail(ErrorCode::config, op, name, {expected}, {got});
  };
  const auto is_positive = [](double x) { return x >= 1e-6 && x <= 1e6; };
  check(is_positive(options.temperature), "temperature", "a number from 1e-6 to 1e6", options.temperature);
  check(options.top_k >= 0, "top_k", "0 or a number of tokens", static_cast<double>(options.top_k));
  check(options.top_p > 0 && options.top_p <= 1, "top_p", "a number above 0, at most 1", options.top_p);
  check(options.min_p >= 0 && options.min_p <= 1, "min_p", "a number from 0 to 1", options.min_p);
  check(is_positive(options.repetition_penalty), "repetition_penalty", "a number from 1e-6 to 1e6", options.repetition_penalty);
}

void check_logits(std::string_view op, std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float most = -kInfinity;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isnan(logits[id]) || logits[id] == kInfinity)
      fail(ErrorCode::out_of_range, op, text({"the logit of token ", id}), {"a number"}, {std::isnan(logits[id]) ? "NaN" : "infinity"});
    most = std::max(most, logits[id]);
  }
  // Their softmax has no value.
  if (most == -kInfinity) fail(ErrorCode::out_of_range, op, "the largest logit", {"a number"}, {"-infinity"});
}

std::vector<double> sampling_probabilities(std::span<const float> logits, std::span<const std::int64_t> before, const SamplingOptions& options) {
  const FloatEnvironment environment;
  return probabilities_of(processed(logits, before, options));
}

TokenChoice choose_token(std::span<const float> logits, std::span<const std::int64_t> before, const SamplingOptions& options, std::uint64_t step) {
  const FloatEnvironment environment;
  std::vector<double> scores = processed(logits, before, options);
  std::size_t id = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  if (options.do_sample) {
    softmax(scores);
    const auto word = [](std::uint64_t x, unsigned shift) { return static_cast<std::uint32_t>(x >> shift); };
    const auto random = kernels::philox({word(step, 0), word(step, 32), 0, 0x746f6b65}, {word(options.seed, 0), word(options.seed, 32)});
    double rest = (static_cast<double>(random[0] >> 5) * 0x1p26 + static_cast<double>(random[1] >> 6)) * 0x1p-53;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] == 0) continue;
      id = i;  // probabilities may add up to less than 1
      if (rest < scores[i]) break;
      rest -= scores[i];
    }
  }
  return LogSum(logits).choice(logits, id);
}

std::vector<TokenChoice> likeliest_tokens(std::span<const float> logits, std::size_t count) {
  const FloatEnvironment environment;
  std::vector<TokenChoice> choices(std::min(count, logits.size()));
  const std::vector<std::uint32_t> order = in_order({logits.begin(), logits.end()}, choices.size());
  const LogSum log_sum_of(logits);
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = log_sum_of.choice(logits, order[i]);
  return choices;
}

TokenScore score_token(std::span<const float> logits, std::int64_t id) {
  const FloatEnvironment environment;
  const float logit = logits[static_cast<std::size_t>(id)];
  const LogSum log_sum_of(logits);
  TokenScore score{.log_probability = log_sum_of.log_probability(logit), .rank = 1};
  for (const float other : logits) {
    const double log_probability = log_sum_of.log_probability(other), probability = exp_of(log_probability);
    if (probability > 0) score.entropy -= probability * log_probability;
    if (other > logit) ++score.rank;
  }
  return score;
}

}  // namespace attn::detail
