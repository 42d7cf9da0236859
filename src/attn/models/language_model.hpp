#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attn/models/encoder_model.hpp"
#include "attn/models/sampling.hpp"

// For a single text of token ids.
namespace attn::detail {

/// Logits of the token after those in the cache and `ids`. Throws OUT_OF_RANGE for NaN logits.
std::vector<float> next_logits(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids, KeyValueCache* cache = nullptr);
/// Of all ids but the first.
std::vector<TokenScore> score_tokens(std::string_view op, const EncoderModel& model, std::span<const std::int64_t> ids);

/// exp(-mean log probability); 1 without scores.
double perplexity(const std::vector<TokenScore>& scores);

}  // namespace attn::detail
