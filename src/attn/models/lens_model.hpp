#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/models/encoder_model.hpp"
#include "attn/models/lens.hpp"

namespace attn::detail {

struct LensTokens {
  std::vector<std::int64_t> ids;
  std::vector<std::string> tokens;
};

/// For sequences of equal length.
struct LensRun {
  std::vector<float> output;                                                    ///< (B,L,E)
  std::vector<std::vector<float>> hidden_states;                                ///< layers + 1 of (B,L,E)
  std::vector<std::vector<float>> attentions;                                   ///< by layer (B,H,L,L)
  std::vector<std::array<std::vector<float>, kTraceNames.size()>> traces = {};  ///< by layer

  const std::vector<float>& trace(std::size_t layer, TraceName name) const { return traces[layer][static_cast<std::size_t>(name)]; }
};

class LensModel {
 public:
  LensModel(std::string_view op, const TextModel& text);

  const ModelConfig& config() const { return model_.config(); }
  EncoderModel& model() const { return model_; }
  std::string_view op() const { return op_; }
  std::size_t width() const { return static_cast<std::size_t>(config().hidden_size); }
  std::size_t heads() const { return static_cast<std::size_t>(config().num_attention_heads); }
  std::size_t layers() const { return static_cast<std::size_t>(config().num_hidden_layers); }

  /// Throws UNSUPPORTED unless the residual stream is the sum of the parts that the lens knows.
  void check_decoder() const;

  /// An overlong text is an error: a truncated one would have other positions.
  LensTokens tokens(const lens::Text& text, const char* argument) const;
  /// Those that the tokenizer adds to an empty text.
  std::vector<std::int64_t> special_ids() const;
  std::vector<std::string> spelled(std::span<const std::int64_t> ids) const;
  std::string spelled(std::int64_t id) const;
  std::int64_t token(const char* argument, const lens::Token& token) const;
  std::optional<std::int64_t> token(const char* argument, const std::optional<lens::Token>& token) const;
  /// Default all.
  std::vector<std::int64_t> indices(const char* argument, const std::optional<std::vector<std::int64_t>>& given, std::int64_t count) const;
  /// Default the last.
  std::int64_t index(const char* argument, std::optional<std::int64_t> given, std::int64_t count) const;

  /// `ids` has the sequences one after the other. Computes no logits.
  LensRun run(std::span<const std::int64_t> ids, std::int64_t sequences, ModelForwardOptions options) const;
  /// Calls use(logits, row) for normed hidden states (count,E). Throws OUT_OF_RANGE for NaN logits.
  void each_row_of_logits(std::span<const float> rows, const std::function<void(std::span<const float>, std::size_t)>& use) const;

  /// In float64, rows (count,E): y = (x - mean) / √(var(x) + ε) · γ + β, or for RMSNorm x / √(mean(x²) + ε) · γ. The npm package computes the same
  /// numbers.
  void final_norm(std::span<float> rows) const;
  /// By the stack's name; empty if there is none. Weights are (out,in).
  std::vector<float> parameter(const std::string& name) const;
  /// A token's logit is row · normed hidden state.
  std::vector<float> unembedding(std::int64_t id) const;

 private:
  const ParameterRef* find(const std::string& name) const;

  std::string_view op_;
  const TextModel& text_;
  EncoderModel& model_;
};

/// The mean (0 for RMSNorm) and divisor of final_norm().
struct NormMoments {
  double mean = 0, divisor = 1;

  NormMoments(const ModelConfig& config, std::span<const float> row);
};

inline std::span<const float> row_of(std::span<const float> matrix, std::size_t row, std::size_t width) { return matrix.subspan(row * width, width); }

}  // namespace attn::detail
