#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/models/sampling.hpp"

// Options and results of TextModel's functions for language models.
namespace attn {

/// A token that may follow a text.
struct NextToken {
  std::int64_t id = 0;
  std::string token;  ///< as in the vocabulary, for example Ġgood
  std::string text;   ///< decoded, for example " good"
  float logit = 0, probability = 0;
};

/// A token that generate() has added to a text.
struct GeneratedToken {
  std::int64_t id = 0;
  /// What the token adds to the text; empty while the bytes of a character are incomplete.
  std::string text;
  float probability = 0;  ///< of the model, before any option changes it
};

/// Options for TextModel::generate().
struct GenerateOptions {
  std::int64_t max_new_tokens = 64;
  SamplingOptions sampling = {};
  std::vector<std::string> stop = {};  ///< generation ends before the first of these strings in the new text
  /// Called for each token; returning false ends generation.
  std::function<bool(const GeneratedToken&)> on_token = nullptr;
  bool add_special_tokens = true;  ///< as in TokenizeOptions, for the prompt
};

/// Why generation ended.
enum class FinishReason : std::uint8_t {
  length,   ///< max_new_tokens, or no more positions
  eos,      ///< the model ended the text
  stop,     ///< a string of GenerateOptions::stop
  aborted,  ///< on_token returned false
};
inline constexpr std::array<std::string_view, 4> kFinishReasonNames{"length", "eos", "stop", "aborted"};

/// Result of TextModel::generate().
struct GeneratedText {
  std::string text;                 ///< the new part, without special tokens and without the stop string
  std::vector<std::int64_t> ids;    ///< of all new tokens
  std::vector<std::string> tokens;  ///< the same as in the vocabulary
  FinishReason finish_reason = FinishReason::length;
};

/// How well the model predicts a token from the tokens before it.
struct ScoredToken {
  std::int64_t id = 0;
  std::string token;  ///< as in the vocabulary
  /// ln p(token), its rank among all tokens (1: the likeliest), and the entropy of the prediction in nats; none for the first token, before which
  /// there is nothing.
  std::optional<double> log_probability = std::nullopt, entropy = std::nullopt;
  std::optional<std::int64_t> rank = std::nullopt;
};

/// Result of TextModel::score_tokens().
struct ScoredText {
  std::vector<ScoredToken> tokens;
  double perplexity = 1;  ///< exp of the negative mean of the log probabilities
};

}  // namespace attn
