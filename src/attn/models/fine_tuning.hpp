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

// Step-by-step training of a model with a head, used by TextModel::fine_tune() and the package's fineTune().
namespace attn::detail {

struct FineTuningOptions {
  std::int64_t steps = 1;  ///< total number of steps, over which the learning rate falls to 0
  double learning_rate = 0, weight_decay = 0;
  std::optional<std::int64_t> layers = std::nullopt;  ///< number of last layers that are trained with the head; 0: only the head; none: everything
  std::uint64_t seed = 0;                             ///< for dropout, together with the index of the step
};

/// Loss for a head, determined by the classification function, whichever file specifies it.
enum class HeadLoss : std::uint8_t {
  cross_entropy,         ///< for the softmax of several labels
  binary_cross_entropy,  ///< for the sigmoid of one label
  mse,                   ///< for the single logit itself: a regression, or a cross-encoder whose files name Identity
  next_token,            ///< cross entropy of the next token at each position of a language model
};

/// Target of a position of a language model that has no loss, as torch's ignore_index.
inline constexpr double kIgnoreIndex = -100;

/// Checks the options and returns the loss of the run. `new_labels` is the number of labels if the head will be new. Throws UNSUPPORTED for int8
/// weights and multi-label heads, CONFIG for options and dropout probabilities outside their range, OUT_OF_RANGE for layers that do not exist and if
/// nothing would be trained.
HeadLoss check_fine_tuning(std::string_view op, const EncoderModel& model, const FineTuningOptions& options,
                           std::optional<std::int64_t> new_labels = std::nullopt);

/// Throws OUT_OF_RANGE unless each target is the index of a class (cross entropy), from 0 to 1 (binary cross entropy), or finite (mse).
void check_targets(std::string_view op, std::span<const double> targets, std::int64_t classes, HeadLoss loss);

/// Results of a model on examples, which are tokens for a language model.
struct Judgement {
  double loss = 0;                                   ///< summed over the examples
  std::optional<std::int64_t> right = std::nullopt;  ///< number of correct predictions; none for a regression
};

/// Returns the indices of `count` examples in random order, determined by the seed and the epoch alone, on every machine.
std::vector<std::size_t> training_order(std::size_t count, std::uint64_t seed, std::uint32_t epoch);

/// Trains a model step by step. A target is the index of a class; with a single logit it is a number from 0 to 1, for a regression any finite number.
/// A language model has a target for each position (B·L): the id of the next token, or kIgnoreIndex.
class FineTuning {
 public:
  /// Refers to the model, which must have a head for texts or next tokens and must not move. Throws as check_fine_tuning().
  FineTuning(std::string_view op, EncoderModel& model, const FineTuningOptions& options);

  /// Runs one step of AdamW on the mean loss of the sequences, as transformers' Trainer: the gradient is clipped to norm 1 (Pascanu et al. 2013), the
  /// learning rate falls linearly, biases and norms have no weight decay, and dropout has the sites and probabilities of config.json, also in layers
  /// that are not trained. Returns the loss before the step. Throws OUT_OF_RANGE if the loss or the gradient is not finite, MEMORY, and as a forward;
  /// the weights are then those after the previous step.
  double step(const ModelInputs& inputs, std::span<const double> targets);
  /// The same for the head alone, from pooled vectors (sequences,E) of pool(), which uses no dropout. With layers = 0 both overloads are equivalent.
  /// Not for language models.
  double step(std::span<const float> pooled, std::span<const double> targets);
  void pool(const ModelInputs& inputs, float* pooled) const;

  Judgement judge(const ModelInputs& inputs, std::span<const double> targets) const;
  Judgement judge(std::span<const float> pooled, std::span<const double> targets) const;

 private:
  /// The trained parameters, with the interface that optimisers expect of a module.
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

  /// Returns the mean loss and writes its gradient with respect to the logits to `gradient`.
  double loss_of(const float* logits, std::span<const double> targets, float* gradient) const;
  Judgement judge_logits(const float* logits, std::span<const double> targets) const;
  Judgement judge_next_tokens(const ModelInputs& inputs, std::span<const double> targets) const;
  /// Runs a step: forward() returns the logits, backward(gradient of the logits, gradients) adds the gradients of the parameters.
  template <class Forward, class Backward>
  double take_step(std::span<const double> targets, Forward forward, Backward backward);
  ForwardRandom random() const;
  [[noreturn]] void refuse(std::string_view what, double value) const;

  std::string op_;
  EncoderModel& model_;
  HeadLoss loss_;
  std::optional<std::int64_t> first_layer_;  ///< first trained layer; none: the embeddings are trained as well
  double learning_rate_;
  std::uint64_t seed_;
  std::int64_t steps_, step_ = 0;
  Trained trained_;
  std::vector<ModuleRef> modules_;
  AdamW optimizer_;
};

}  // namespace attn::detail
