#pragma once

#include <cstdint>
#include <vector>

#include "attn/layers/linear_layer.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/norm_layer.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/models/model_config.hpp"

namespace attn::detail {

class Gradients;  // layers/gradients.hpp

/// From hidden states (pooled, or of one token) to logits: softcap(classifier(norm(activation(dense x)))), without the parts that a family does not
/// have. A tied classifier is the word embedding matrix.
class Head {
 public:
  Head() = default;
  explicit Head(const ModelConfig& config);

  std::int64_t outputs() const { return classifier_.out_features(); }
  std::int64_t width() const { return classifier_.in_features(); }

  void visit_parameters(ParameterVisitor& visitor);

  /// x (rows,E), logits (rows,outputs())
  void forward(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const;

  /// With dropout, which changes x. `dense` (rows,width()) receives the dense layer's output before the activation.
  void forward(float* x, std::int64_t rows, const Table& words, const ForwardRandom& random, float* dense, float* logits, Scratch& scratch) const;
  /// grad is that of the logits; rows that are 0 have no effect. of_x may be null.
  void backward(const float* grad, const float* x, const float* dense, std::int64_t rows, const Table& words, const ForwardRandom& random,
                float* of_x, Gradients& gradients, Scratch& scratch) const;

 private:
  bool has_dense() const { return dense_.out_features() > 0; }
  void classify(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const;

  Linear dense_, classifier_;  // a tied classifier has only its shape
  Norm norm_;
  Activation activation_ = Activation::tanh;
  bool is_tied_ = false;
  float softcap_ = 0;             // 0: none
  std::vector<float> tied_bias_;  // (outputs)
};

}  // namespace attn::detail
