#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/tensor/state.hpp"

namespace attn {

class EncoderModel;

namespace detail {

struct ModelInputs;

/// The number that gradients are of: of sequence `row` the logit of a label, where the head is of tokens that of one of them, or a number of the
/// pooled vector.
struct ModelGradientTarget {
  std::int64_t row = 0;
  std::optional<std::int64_t> label = std::nullopt, component = std::nullopt, token = std::nullopt;
};

/// Gradients of one number of a model: what was asked is checked and the forward done, and then run() is the backward.
class ModelGradient {
 public:
  /// Throws UNSUPPORTED for int8 and for a label without a head, ARGUMENT where the target is neither or both, or nothing is asked for,
  /// OUT_OF_RANGE for what is not there, and as a forward.
  ModelGradient(std::string_view op, EncoderModel& model, const ModelInputs& inputs, const ModelGradientTarget& target, bool embeddings,
                bool attentions, bool parameters);
  ~ModelGradient();
  ModelGradient(const ModelGradient&) = delete;
  ModelGradient& operator=(const ModelGradient&) = delete;

  float value() const;
  const Shape& embeddings() const;  ///< (B,L,E)
  const Shape& attentions() const;  ///< of one layer, (B,H,L,L)
  std::size_t layers() const;
  /// Where they are null, or none, they are not asked for. Parameters by the checkpoint's names. Throws MEMORY.
  void run(float* embeddings, const std::vector<float*>& attentions, const StateTarget* parameters) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace detail
}  // namespace attn
