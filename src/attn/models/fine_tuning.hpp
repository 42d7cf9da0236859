#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/models/encoder_model.hpp"
#include "attn/train/adam.hpp"

namespace attn::detail {

struct FineTuningOptions {
  std::int64_t steps = 1;  ///< over which the learning rate falls to 0
  double learning_rate = 0, weight_decay = 0;
  std::optional<std::int64_t> layers = std::nullopt;  ///< last layers that are trained with the head; 0: only the head; none: everything
  std::uint64_t seed = 0;
};

enum class HeadLoss : std::uint8_t {
  cross_entropy,         ///< softmax
  binary_cross_entropy,  ///< sigmoid of one label
  mse,                   ///< a regression, or a cross-encoder with Identity
  next_token,            ///< language models
};

/// Target of positions without a loss: torch's ignore_index.
inline constexpr double kIgnoreIndex = -100;

/// Returns the run's loss. `new_labels`: of a new head. Throws UNSUPPORTED for int8 weights and multi-label heads, OUT_OF_RANGE if nothing would be
/// trained.
HeadLoss check_fine_tuning(std::string_view op, const EncoderModel& model, const FineTuningOptions& options,
                           std::optional<std::int64_t> new_labels = std::nullopt);

/// Targets are class indices (cross entropy), from 0 to 1 (binary cross entropy), or finite (mse).
void check_targets(std::string_view op, std::span<const double> targets, std::int64_t classes, HeadLoss loss);

/// Examples are tokens for a language model.
struct Judgement {
  double loss = 0;                                   ///< summed over the examples
  std::optional<std::int64_t> right = std::nullopt;  ///< correct predictions; none for a regression
};

/// Depends only on the arguments, on every machine.
std::vector<std::size_t> training_order(std::size_t count, std::uint64_t seed, std::uint32_t epoch);

/// Targets as in check_targets(); a language model has one for each position (B·L): the id of the next token, or kIgnoreIndex.
class FineTuning {
 public:
  /// Refers to the model, which must not move.
  FineTuning(std::string_view op, EncoderModel& model, const FineTuningOptions& options);

  /// AdamW on the mean loss, as transformers' Trainer: the gradient is clipped to norm 1 (Pascanu et al. 2013), biases and norms have no weight
  /// decay, frozen layers have dropout too. Returns the loss before the step. If the loss or the gradient is not finite, throws OUT_OF_RANGE and
  /// changes no weights.
  double step(const ModelInputs& inputs, std::span<const double> targets);
  /// For the head alone, from pool(), which has no dropout; equivalent if layers = 0. Not for language models.
  double step(std::span<const float> pooled, std::span<const double> targets);
  void pool(const ModelInputs& inputs, float* pooled) const;

  Judgement judge(const ModelInputs& inputs, std::span<const double> targets) const;
  Judgement judge(std::span<const float> pooled, std::span<const double> targets) const;

 private:
  class Trained {
   public:
    Trained(EncoderModel& model, std::optional<std::int64_t> layers);
    StateTensors state_tensors() const;
    std::map<std::string, Shape> parameter_shapes() const { return shapes_; }
    bool is_quantized() const { return false; }
    const std::shared_ptr<GradientPlace::Shared>& share_gradients() { return place_.share(); }

   private:
    EncoderModel& model_;
    std::map<std::string, Shape> shapes_;
    GradientPlace place_;
  };

  /// Returns the mean loss; `gradient` receives that of the logits.
  double loss_of(const float* logits, std::span<const double> targets, float* gradient) const;
  Judgement judge_logits(const float* logits, std::span<const double> targets) const;
  Judgement judge_next_tokens(const ModelInputs& inputs, std::span<const double> targets) const;
  /// forward() returns the logits; backward(of_logits, gradients) adds the gradients of the parameters.
  template <class Forward, class Backward>
  double take_step(std::span<const double> targets, Forward forward, Backward backward);
  ForwardRandom random() const;
  [[noreturn]] void refuse(std::string_view what, double value) const;

  std::string op_;
  EncoderModel& model_;
  HeadLoss loss_;
  std::optional<std::int64_t> first_layer_;  ///< none: also the embeddings
  double learning_rate_;
  std::uint64_t seed_;
  std::int64_t steps_, step_ = 0;
  Trained trained_;
  std::vector<ModuleRef> modules_;
  AdamW optimizer_;
};

}  // namespace attn::detail
