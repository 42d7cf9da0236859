#pragma once

#include <vector>

#include "attn/train/optimizer.hpp"

namespace attn {

/// Options for SGD.
struct SGDOptions {
  double learning_rate = 1e-3;              ///< learning rate η, above 0
  std::vector<ParameterGroup> groups = {};  ///< parameters with other options
  double momentum = 0;                      ///< momentum µ, at least 0
  double dampening = 0;                     ///< dampening τ
  bool nesterov = false;                    ///< whether to use Nesterov momentum; requires momentum above 0 and dampening 0
  double weight_decay = 0;                  ///< weight decay λ, at least 0
};

/// Stochastic gradient descent: g += λ p; b = g in the first step, then µ b + (1 - τ) g; p -= η b, with Nesterov η (g
/// + µ b), without momentum η g. With momentum the state contains momentum_buffer of the parameter's shape.
///
/// @throws ARGUMENT if a module is given twice or none is given
/// @throws CONFIG if an option is outside its range
/// @throws UNSUPPORTED for an int8 module
/// @see torch.optim.SGD; Sutskever et al. 2013
///
/// @code
/// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
/// attn::SGD optimizer({layer}, {.learning_rate = 0.1, .momentum = 0.9});
/// xt::xtensor<float, 3> x = xt::ones<float>({1, 2, 4});
/// layer.train();
/// layer.backward(layer.forward(x).output);
/// optimizer.step();
/// std::cout << optimizer.state_dict().count("0.out_proj.weight.momentum_buffer");  // 1
/// @endcode
class SGD : public Optimizer {
 public:
  /// Creates an optimiser of these modules, which must outlive its steps. Throws the errors above.
  explicit SGD(std::vector<ModuleRef> modules, const SGDOptions& options = {});

 private:
  void update(const Rates& rates, const Numbers& x) const noexcept override;

  double momentum_, dampening_;
  bool nesterov_;
};

}  // namespace attn
