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

/// The last part of a model, from a row of hidden states (pooled, or of one token) to logits: softcap(classifier(norm(activation(dense x)))). Parts
/// that a family does not have are skipped. A tied classifier of a fill-mask head is the word embedding matrix.
class Head {
 public:
  Head() = default;
  /// Creates a head without weights.
  explicit Head(const ModelConfig& config);

  /// Number of logits per row.
  std::int64_t outputs() const { return classifier_.out_features(); }
  /// Input width of the classifier, which is the output width of dense.
  std::int64_t width() const { return classifier_.in_features(); }

  /// Yields "classifier_dense.weight", "classifier_norm.weight", "classifier.weight" and so on.
  void visit_parameters(ParameterVisitor& visitor);

  /// Computes logits (rows,outputs()) from x (rows,E).
  void forward(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const;

  /// The same with dropout, if active, which also changes x. `dense` (rows,width()) receives the output of the dense layer before the activation, if
  /// there is a dense layer.
  void forward(float* x, std::int64_t rows, const Table& words, const ForwardRandom& random, float* dense, float* logits, Scratch& scratch) const;
  /// Computes gradients from grad, the gradient of the logits; of_x may be null. Rows of grad that are 0 have no effect.
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
