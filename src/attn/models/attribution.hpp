#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace attn {

class EncoderModel;

/// How much each token has to do with an answer f, a logit before softmax.
enum class AttributionMethod : std::uint8_t {
  integrated_gradients,  ///< (x - b) · ∫ ∂f/∂x along the way from b to x, word embeddings of padding and of the text (Sundararajan et al. 2017)
  gradient_x_input,      ///< x · ∂f/∂x, x the word embedding
  attention_rollout,     ///< what attention hands on, half of it and half the token itself in each layer (Abnar & Zuidema 2020)
  attention_gradient,    ///< the same of the positive part of attention · its gradient (Chefer et al. 2021)
  leave_one_out,         ///< f of the text less f of the text without the token
};

inline constexpr std::array<std::string_view, 5> kAttributionMethodNames{"integrated_gradients", "gradient_x_input", "attention_rollout",
                                                                         "attention_gradient", "leave_one_out"};

namespace detail {

/// One text, and what is asked of it. Refers to the caller's memory.
struct AttributionCall {
  std::span<const std::int64_t> ids = {}, types = {};  ///< (L); types may be none: all 0
  std::span<const std::uint8_t> special = {};          ///< (L), not 0 for tokens that the tokenizer added: they stay as they are
  std::int64_t pad_id = 0;
  AttributionMethod method = AttributionMethod::integrated_gradients;
  std::int64_t target = 0;  ///< a label, or without a head a number of what is pooled
  std::int64_t steps = 50;  ///< of integrated_gradients
};

/// Scores of tokens in portions, between which a caller may stop. What all portions give is added up in float64.
class Attribution {
 public:
  /// Throws OUT_OF_RANGE for a target or a sequence that the model has not, CONFIG for steps, UNSUPPORTED for gradients of int8 weights, MEMORY.
  Attribution(std::string_view op, const EncoderModel& model, const AttributionCall& call);

  std::int64_t portions() const { return portions_; }
  /// Scores (L) of portion `index`, and of the first of integrated_gradients {f(text), f(baseline)}; 0 of others.
  void run(std::int64_t index, float* scores, float* values) const;

 private:
  void integrate(std::int64_t first, std::int64_t count, double* scores, float* values) const;
  void gradient_x_input(double* scores) const;
  void attention(bool with_gradient, double* scores) const;
  void leave_out(std::int64_t first, std::int64_t count, double* scores) const;
  /// How much of each position what is pooled is made of.
  std::vector<double> pooled() const;

  std::string_view op_;
  const EncoderModel& model_;
  AttributionCall call_;
  std::int64_t length_;
  std::size_t width_;                // numbers of a result
  std::vector<std::int64_t> words_;  // places of tokens that are not special
  std::int64_t portions_ = 1;
};

/// |Σ scores - (f(text) - f(baseline))| / |f(text) - f(baseline)|, values as run() leaves them.
double convergence_delta(std::span<const double> scores, const float* values);

/// Places and weights of n steps in [0,1], by which an integral is a sum (Gauss-Legendre).
struct Quadrature {
  std::vector<double> places, weights;
  explicit Quadrature(std::int64_t n);
};

}  // namespace detail
}  // namespace attn
