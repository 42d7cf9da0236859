#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace attn {

class EncoderModel;

/// Methods that compute how much each token contributes to f, a logit before softmax.
enum class AttributionMethod : std::uint8_t {
  integrated_gradients,  ///< (x - b) · ∫ ∂f/∂x along the line from b to x, the embeddings of padding and of the text (Sundararajan et al. 2017)
  gradient_x_input,      ///< x · ∂f/∂x, x the word embedding
  attention_rollout,     ///< attention weights multiplied over the layers, each averaged with the identity (Abnar & Zuidema 2020)
  attention_gradient,    ///< the same with the positive part of attention · its gradient, plus the identity (Chefer et al. 2021)
  leave_one_out,         ///< f of the text minus f of the text without the token
};

inline constexpr std::array<std::string_view, 5> kAttributionMethodNames{"integrated_gradients", "gradient_x_input", "attention_rollout",
                                                                         "attention_gradient", "leave_one_out"};

namespace detail {

class Table;
struct EncoderBuffers;
struct KeptModel;
struct ModelForwardOptions;
struct ModelInputs;
struct ModelPlan;

/// Arguments for the attribution of one text. Refers to the caller's memory.
struct AttributionCall {
  std::span<const std::int64_t> ids = {}, types = {};  ///< (L); if types are empty, all are 0
  std::span<const std::uint8_t> special = {};          ///< (L), not 0 for tokens that the tokenizer added; they are not changed
  std::int64_t pad_id = 0;
  AttributionMethod method = AttributionMethod::integrated_gradients;
  /// A label or a token of the vocabulary; without a head, and for a head of tokens without `position`, an index into the pooled vector. Default: the
  /// output of the head with the largest logit.
  std::optional<std::int64_t> target = std::nullopt;
  std::optional<std::int64_t> contrast = std::nullopt;  ///< a logit that is subtracted
  std::optional<std::int64_t> position = std::nullopt;  ///< token whose logits these are, for a head of tokens
  std::int64_t steps = 50;                              ///< for integrated_gradients
};

/// Nodes and weights of Gauss-Legendre quadrature with n points in [0, 1].
struct Quadrature {
  std::vector<double> places, weights;
  explicit Quadrature(std::int64_t n);
};

/// Computes scores of tokens in portions, between which a caller may stop. The caller adds up the results of all portions in float64.
class Attribution {
 public:
  /// Throws OUT_OF_RANGE if the model does not have the target, the position or the ids, ARGUMENT for a text that is too short or without a target
  /// that the method needs, CONFIG for steps, UNSUPPORTED for gradients of int8 weights and for a position or a contrast without such a head, MEMORY.
  Attribution(std::string_view op, const EncoderModel& model, const AttributionCall& call);

  std::int64_t portions() const { return portions_; }
  std::int64_t target() const { return target_; }
  /// Computes the scores (L) of portion `index`. `values` gets {f(text), f(baseline)} in the first portion of integrated_gradients, otherwise 0.
  void run(std::int64_t index, float* scores, float* values) const;

 private:
  void integrate(std::int64_t first, std::int64_t count, double* scores, float* values) const;
  void gradient_x_input(double* scores) const;
  void attention(bool with_gradient, double* scores) const;
  void leave_out(std::int64_t first, std::int64_t count, double* scores) const;
  void check_output(std::string_view name, std::int64_t output) const;
  std::int64_t likeliest() const;
  bool of_head() const;
  ModelPlan plan(const ModelInputs& inputs, ModelForwardOptions options) const;
  /// Runs a forward for backward(), with the head at `position` of each sequence if there is one.
  std::vector<std::int64_t> rows_of(const ModelInputs& inputs) const;
  std::unique_ptr<KeptModel> run_and_keep(const ModelPlan& plan, const ModelInputs& inputs, const EncoderBuffers& buffers,
                                          const Table* words = nullptr) const;
  /// f from the results of a sequence.
  float value(const float* results) const;
  /// Adds the gradient of f with respect to the results of a sequence.
  void add_gradient(float* of_results) const;
  /// Share of each position in what the head reads.
  std::vector<double> pooled() const;

  std::string_view op_;
  const EncoderModel& model_;
  AttributionCall call_;
  std::int64_t length_;
  std::size_t width_;  // size of a result
  std::int64_t target_ = 0;
  std::vector<std::int64_t> words_;  // positions of tokens that are not special
  std::int64_t portions_ = 1;
  Quadrature quadrature_{0};  // of integrated_gradients
};

/// Returns |Σ scores - (f(text) - f(baseline))| / |f(text) - f(baseline)|; `values` are those of Attribution::run().
double convergence_delta(std::span<const double> scores, const float* values);

}  // namespace detail
}  // namespace attn
