#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/layers/encoder_forward.hpp"
#include "attn/tensor/state.hpp"

namespace attn {

class EncoderModel;

namespace detail {

struct ModelInputs;

/// What is differentiated: a logit (`label`; for a token head at position `token`) or a component of the pooled vector of sequence `row`.
struct ModelGradientTarget {
  std::int64_t row = 0;
  std::optional<std::int64_t> label = std::nullopt, component = std::nullopt, token = std::nullopt;
  std::optional<std::int64_t> contrast = std::nullopt;  ///< its logit is subtracted
};

/// The constructor checks the arguments and runs the forward; run() runs the backward.
class ModelGradient {
 public:
  /// Throws ARGUMENT unless the target is either a label or a component, and if no gradients are requested.
  ModelGradient(std::string_view op, EncoderModel& model, const ModelInputs& inputs, const ModelGradientTarget& target, bool embeddings,
                bool attentions, bool parameters, const std::optional<EncoderTraceOptions>& trace = std::nullopt);
  ~ModelGradient();
  ModelGradient(const ModelGradient&) = delete;
  ModelGradient& operator=(const ModelGradient&) = delete;

  float value() const;
  const Shape& embeddings() const;  ///< (B,L,word_width())
  const Shape& attentions() const;  ///< (B,H,L,L), of one layer
  std::size_t layers() const;
  const EncoderPlan& traced() const;
  /// Arguments are null or empty if not requested; `traces` is by layer. Parameters have their names in the checkpoint.
  void run(float* embeddings, const std::vector<float*>& attentions, const StateTarget* parameters, std::vector<TraceBuffers> traces = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace detail
}  // namespace attn
