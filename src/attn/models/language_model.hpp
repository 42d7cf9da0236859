#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attn/models/encoder_model.hpp"
#include "attn/models/sampling.hpp"

// What language models compute for a single text of token ids.
namespace attn::detail {

/// Returns the logits of the token after `ids`; with a cache, after the tokens in the cache and `ids`. Throws UNSUPPORTED for another task, ARGUMENT
/// without ids, OUT_OF_RANGE for NaN logits, and as EncoderModel::plan.
std::vector<float> next_logits(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids, KeyValueCache* cache = nullptr);
/// Returns the scores of all ids but the first. Throws as next_logits().
std::vector<TokenScore> score_tokens(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids);

/// exp of the negative mean of the log probabilities; 1 without scores.
double perplexity(const std::vector<TokenScore>& scores);

}  // namespace attn::detail
