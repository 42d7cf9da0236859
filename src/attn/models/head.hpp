#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attn/layers/linear.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/norm.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/models/model_config.hpp"

namespace attn::detail {

class Gradients;  // layers/gradients.hpp

/// What a checkpoint makes of a row of hidden states, pooled or of a token: classifier(norm(activation(dense x))). What a family does without is
/// passed over. The classifier of a head that fills masks is the word table itself where the two are tied.
class Head {
 public:
  Head() = default;
  /// Without numbers yet.
  explicit Head(const ModelConfig& config);

  /// Numbers of a row's result.
  std::int64_t outputs() const { return classifier_.out_features(); }
  /// Width of what dense gives.
  std::int64_t width() const { return classifier_.in_features(); }

  /// Names where its numbers will be: "classifier_dense.weight", "classifier_norm.weight", "classifier.weight" and so on.
  void add_parameters(Parameters& parameters);
  void add_shapes(std::map<std::string, Shape>& shapes) const;
  void make_int8();

  /// x (rows,E) -> logits (rows,outputs()).
  void forward(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const;

  /// The same with dropout, where that is active: of x itself, too. dense (rows,width()), where there is a map dense, gets what comes before the
  /// activation.
  void forward(float* x, std::int64_t rows, const Table& words, const ForwardRandom& random, float* dense, float* logits, Scratch& scratch) const;
  /// Gradients from that of the logits, grad; of_x may be null. Rows of grad that are 0 take no part.
  void backward(const float* grad, const float* x, const float* dense, std::int64_t rows, const Table& words, const ForwardRandom& random,
                float* of_x, Gradients& gradients, Scratch& scratch) const;

 private:
  bool has_dense() const { return dense_.out_features() > 0; }
  void classify(const float* x, std::int64_t rows, const Table& words, float* logits, Scratch& scratch) const;

  Linear dense_, classifier_;  // of a tied classifier there is the shape alone
  Norm norm_;
  Activation activation_ = Activation::tanh;
  bool is_tied_ = false, is_quantized_ = false;
  std::vector<float> tied_bias_;  // (outputs)
};

}  // namespace attn::detail
