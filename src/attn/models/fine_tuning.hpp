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

// Training of a model with a head, step by step: what TextModel::fine_tune() and the package's fineTune() do in the same way.
namespace attn::detail {

struct FineTuningOptions {
  std::int64_t steps = 1;  ///< of the whole run: the learning rate falls to 0 along them
  double learning_rate = 0, weight_decay = 0;
  std::optional<std::int64_t> layers = std::nullopt;  ///< the last so many and the head, 0: the head alone; none: everything
  std::uint64_t seed = 0;                             ///< of dropout, with the number of the step
};

/// What a head learns by, which follows from what makes answers of its logits, wherever the model's files say that.
enum class HeadLoss : std::uint8_t {
  cross_entropy,         ///< softmax of several labels
  binary_cross_entropy,  ///< the sigmoid of one label
  mse,                   ///< the one logit itself: a regression, or a cross-encoder whose files name Identity
};

/// The loss of the run. `new_labels`: so many of a head that is to be a new one. Throws UNSUPPORTED for int8 and a head whose labels are several for
/// a text, CONFIG, for the checkpoint's dropout as well, OUT_OF_RANGE for layers that are not there.
HeadLoss check_fine_tuning(std::string_view op, const EncoderModel& model, const FineTuningOptions& options,
                           std::optional<std::int64_t> new_labels = std::nullopt);

/// Throws OUT_OF_RANGE for the label of an example that is none: of so many classes its number, of one what lies between 0 and 1, of a regression
/// any finite number.
void check_targets(std::string_view op, std::span<const double> targets, std::int64_t classes, HeadLoss loss);

/// What a model makes of examples.
struct Judgement {
  double loss = 0;                                   ///< summed over the examples
  std::optional<std::int64_t> right = std::nullopt;  ///< whose answer is the label; none for a regression
};

/// Places of `count` examples in random order: the same on every machine, from the seed and the number of the epoch.
std::vector<std::size_t> training_order(std::size_t count, std::uint64_t seed, std::uint32_t epoch);

/// Targets are numbers of classes, or of one logit what it shall be: 0 or 1, of a regression any number.
class FineTuning {
 public:
  /// The model, which has a head, stays where it is. Throws as check_fine_tuning().
  FineTuning(std::string_view op, EncoderModel& model, const FineTuningOptions& options);

  /// One step of AdamW down the gradient of the mean loss of some sequences, whose norm is cut to 1 (Pascanu et al. 2013); the learning rate falls
  /// linearly, biases and norms do not decay, and there is dropout where and as likely as the config has it, of layers that stay as they are, too
  /// (transformers' Trainer). Returns the loss before it. Throws OUT_OF_RANGE for a loss or gradient that is no finite number, MEMORY, and as a
  /// forward; weights are those of the step before then.
  double step(const ModelInputs& inputs, std::span<const double> targets);
  /// The same of the head alone, from pooled (sequences,E) on, as pool() gives it: without dropout before that. With layers 0 both are the same.
  double step(std::span<const float> pooled, std::span<const double> targets);
  void pool(const ModelInputs& inputs, float* pooled) const;

  Judgement judge(const ModelInputs& inputs, std::span<const double> targets) const;
  Judgement judge(std::span<const float> pooled, std::span<const double> targets) const;

 private:
  /// The parameters that are trained, as an optimiser knows a module.
  class Trained {
   public:
    Trained(EncoderModel& model, std::optional<std::int64_t> layers);
    StateParameters state_parameters() const;
    std::map<std::string, Shape> parameter_shapes() const { return shapes_; }
    bool is_quantized() const { return false; }
    const std::shared_ptr<GradientPlace::Shared>& share_gradients() { return place_.share(); }

   private:
    EncoderModel& model_;
    std::map<std::string, Shape> shapes_;
    GradientPlace place_;
  };

  /// The mean loss of logits; gradient gets that with respect to them.
  double loss_of(const float* logits, std::span<const double> targets, float* gradient) const;
  Judgement judge_logits(const float* logits, std::span<const double> targets) const;
  /// A step whose forward() gives the logits, and whose backward(their gradient, gradients) goes on from there.
  template <class Forward, class Backward>
  double take_step(std::span<const double> targets, Forward forward, Backward backward);
  ForwardRandom random() const;
  [[noreturn]] void refuse(std::string_view what, double value) const;

  std::string op_;
  EncoderModel& model_;
  HeadLoss loss_;
  std::optional<std::int64_t> first_layer_;  ///< that is trained; none: the embeddings are, too
  double learning_rate_;
  std::uint64_t seed_;
  std::int64_t steps_, step_ = 0;
  Trained trained_;
  std::vector<ModuleRef> modules_;
  AdamW optimizer_;
};

}  // namespace attn::detail
