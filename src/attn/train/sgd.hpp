#pragma once

#include <vector>

#include "attn/train/optimizer.hpp"

namespace attn {

struct SGDOptions {
  double learning_rate = 1e-3;              ///< η, above 0
  std::vector<ParameterGroup> groups = {};  ///< of parameters with options of their own
  double momentum = 0;                      ///< µ, 0 or above
  double dampening = 0;                     ///< τ
  bool nesterov = false;                    ///< takes a momentum above 0 and no dampening
  double weight_decay = 0;                  ///< λ, 0 or above
};

/// g += λ p; b = g in the first step, then µ b + (1 - τ) g; p -= η b, with Nesterov η (g + µ b), without momentum η g
/// (torch.optim.SGD; Sutskever et al. 2013)
///
/// Keeps, where there is momentum: momentum_buffer, the shape of the parameter. Throws ARGUMENT, CONFIG, UNSUPPORTED.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<ModuleRef> modules, const SGDOptions& options = {});

 private:
  void update(const Rates& rates, const Numbers& x) const noexcept override;

  double momentum_, dampening_;
  bool nesterov_;
};

}  // namespace attn
