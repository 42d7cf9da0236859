#pragma once

#include <array>
#include <vector>

#include "attn/train/optimizer.hpp"

namespace attn {

/// Options for Adam.
struct AdamOptions {
  double learning_rate = 1e-3;              ///< learning rate η, above 0
  std::array<double, 2> betas{0.9, 0.999};  ///< decay rates β of the means of g and g², each in [0, 1)
  double eps = 1e-8;                        ///< term ε of the denominator, at least 0
  double weight_decay = 0;                  ///< weight decay λ, at least 0
  std::vector<ParameterGroup> groups = {};  ///< parameters with other options
};

/// Options for AdamW, with the same ranges as AdamOptions.
struct AdamWOptions {
  double learning_rate = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  std::vector<ParameterGroup> groups = {};
};

/// Adam: g += λ p; m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²; p -= η / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε) in
/// step t of the parameter. The state contains exp_avg and exp_avg_sq of the parameter's shape, and step of rank 0.
///
/// @throws ARGUMENT if a module is given twice or none is given
/// @throws CONFIG if an option is outside its range
/// @throws UNSUPPORTED for an int8 module
/// @see Kingma & Ba 2015; torch.optim.Adam
///
/// @code
/// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
/// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 2}}}});
/// attn::Adam optimizer({words}, {.learning_rate = 0.5});
/// const std::vector<float> gradient{3, -4};
/// words.add_gradients({{"weight", attn::TensorView(gradient.data(), {1, 2})}});
/// optimizer.step();
/// std::cout << words.state_dict().at("weight");  // {{ 0.5, 2.5}}
/// @endcode
class Adam : public Optimizer {
 public:
  /// Creates an optimiser of these modules, which must outlive its steps. Throws the errors above.
  explicit Adam(std::vector<ModuleRef> modules, const AdamOptions& options = {});

 protected:
  Adam(std::string_view name, std::vector<ModuleRef> modules, const AdamOptions& options, bool decoupled);

 private:
  void update(const Rates& rates, const Numbers& x) const noexcept override;

  std::array<double, 2> betas_;
  double eps_;
  bool decoupled_;
};

/// Adam with decoupled weight decay: p *= 1 - η λ instead of g += λ p, otherwise like Adam.
///
/// @see Loshchilov & Hutter 2019; torch.optim.AdamW
///
/// @code
/// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
/// attn::AdamW optimizer({layer}, {.learning_rate = 1e-3, .weight_decay = 0.01});
/// optimizer.set_learning_rate(attn::linear_schedule(50, {.learning_rate = 1e-3, .warmup = 100, .steps = 1000}));
/// std::cout << optimizer.learning_rate();  // 0.0005
/// @endcode
class AdamW : public Adam {
 public:
  /// Creates an optimiser of these modules, which must outlive its steps. Throws the errors of Adam.
  explicit AdamW(std::vector<ModuleRef> modules, const AdamWOptions& options = {});
};

}  // namespace attn
