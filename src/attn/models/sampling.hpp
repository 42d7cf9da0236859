#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace attn {

/// How the next token is chosen from the logits, as transformers' logits processors do it.
struct SamplingOptions {
  bool do_sample = false;         ///< false: the token with the largest logit; temperature, top_k, top_p and min_p then do not matter
  double temperature = 1;         ///< divisor of the logits, above 0
  std::int64_t top_k = 0;         ///< only tokens whose logit is among the k largest; 0: all
  double top_p = 1;               ///< only the likeliest tokens that together have this probability (Holtzman et al. 2020), in (0,1]
  double min_p = 0;               ///< only tokens with at least this share of the largest probability (Nguyen et al. 2024), in [0,1]
  double repetition_penalty = 1;  ///< divides positive and multiplies negative logits of tokens that occur before (Keskar et al. 2019), above 0
  std::uint64_t seed = 0;         ///< same seed, same tokens
};

/// A token that may come next.
struct TokenChoice {
  std::int64_t id = 0;
  float logit = 0;
  float probability = 0;  ///< softmax of the logits, before any option changes them
};

namespace detail {

/// Throws CONFIG for an option outside its range.
void check_sampling(std::string_view op, const SamplingOptions& options);
/// Throws OUT_OF_RANGE for NaN and infinity, and if all logits are -infinity, because they have no softmax.
void check_logits(std::string_view op, std::span<const float> logits);

/// Returns the probability of each token from which a token is drawn.
std::vector<double> sampling_probabilities(std::span<const float> logits, std::span<const std::int64_t> before, const SamplingOptions& options);
/// Returns the token that follows `before`, as the step-th token of a text.
TokenChoice choose_token(std::span<const float> logits, std::span<const std::int64_t> before, const SamplingOptions& options, std::uint64_t step);
/// Returns the likeliest tokens, the likeliest first, and of equally likely ones that with the lower id.
std::vector<TokenChoice> likeliest_tokens(std::span<const float> logits, std::size_t count);

/// How well a distribution predicted the token that came.
struct TokenScore {
  double log_probability = 0, entropy = 0;  ///< natural logarithms
  std::int64_t rank = 0;                    ///< 1: no other token has a larger logit
};
TokenScore score_token(std::span<const float> logits, std::int64_t id);

}  // namespace detail
}  // namespace attn
