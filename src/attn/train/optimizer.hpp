#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/parameter.hpp"
#include "attn/tensor/results.hpp"
#include "attn/tensor/state.hpp"
#include "attn/train/module_ref.hpp"

namespace attn {

/// Options for the parameters whose names match, instead of those of the optimiser. Of several matching groups the
/// first applies.
struct ParameterGroup {
  std::function<bool(const std::string& name)> names;  ///< predicate on names of state_dict(), for every module
  std::optional<double> learning_rate = std::nullopt;  ///< learning rate, above 0
  std::optional<double> weight_decay = std::nullopt;   ///< weight decay, at least 0
};

/// Base class of all optimisers (torch.optim.Optimizer). It refers to its modules, which must remain in place and
/// float32. Parameters without a gradient do not change. All arithmetic is float32, number by number, with PyTorch's
/// formulas in PyTorch's order and without fused operations: the bits are the same on every machine and with any number
/// of threads. A NaN in a gradient propagates to its parameter, as in PyTorch.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Takes one step along the gradients that exist. If a context's executor throws, the step is completed first. When a module loads new weights
  /// (load_state_dict), it discards its gradients, but the optimiser keeps its state.
  ///
  /// @throws ARGUMENT if a module was destroyed, moved or given other shapes
  /// @throws UNSUPPORTED if a module has become int8
  /// @throws MEMORY if the state exceeds the memory limit; after an error no weight has changed
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 2}}}});
  /// attn::SGD optimizer({words}, {.learning_rate = 0.5});
  /// const std::vector<float> gradient{1, -1};
  /// words.add_gradients({{"weight", attn::TensorView(gradient.data(), {1, 2})}});
  /// optimizer.step();
  /// std::cout << words.state_dict().at("weight");  // {{ 0.5, 2.5}}
  /// @endcode
  void step();
  /// Removes the gradients of all modules.
  ///
  /// @throws ARGUMENT, UNSUPPORTED as step()
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::SGD optimizer({words}, {.learning_rate = 0.5});
  /// const std::vector<float> gradient{1, -1};
  /// words.add_gradients({{"weight", attn::TensorView(gradient.data(), {1, 2})}});
  /// optimizer.zero_grad();
  /// std::cout << words.gradients().size();  // 0
  /// @endcode
  void zero_grad();

  /// Returns the learning rate of parameters without a group of their own.
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// std::cout << attn::SGD({words}, {.learning_rate = 0.1}).learning_rate();  // 0.1
  /// @endcode
  double learning_rate() const { return learning_rate_; }
  /// Sets the learning rate. The rates of groups change in the same proportion, as with PyTorch's schedulers.
  ///
  /// @param learning_rate  0 or above; schedules begin and end at 0
  /// @throws CONFIG if it is negative or not finite
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::SGD optimizer({words}, {.learning_rate = 0.1});
  /// for (int step = 0; step < 5; ++step) optimizer.set_learning_rate(attn::linear_schedule(step, {.learning_rate = 0.1, .steps = 5}));
  /// std::cout << optimizer.learning_rate();  // 0.02
  /// @endcode
  void set_learning_rate(double learning_rate);

  /// Returns the state of each parameter that has taken a step. A key consists of the module's index, the parameter's
  /// name and PyTorch's name for the value, for example "0.linear1.weight.exp_avg". Options are not included.
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::AdamW optimizer({words});
  /// const std::vector<float> gradient{1, -1};
  /// words.add_gradients({{"weight", attn::TensorView(gradient.data(), {1, 2})}});
  /// optimizer.step();
  /// for (const auto& [name, value] : optimizer.state_dict()) std::cout << name << ' ';  // 0.weight.exp_avg 0.weight.exp_avg_sq 0.weight.step
  /// @endcode
  template <class Of = Optimizer>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : state_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// Restores a state of state_dict(). Parameters that it does not contain start again without steps.
  ///
  /// @throws MISMATCH with all unexpected, mis-shaped and incomplete names
  /// @throws ARGUMENT if a step is not a whole number from 1 to 2²⁴
  /// @throws MEMORY if the copy exceeds the memory limit; after an error nothing has changed
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::SGD before({words}, {.momentum = 0.9}), after({words}, {.momentum = 0.9});
  /// const std::vector<float> gradient{1, -1};
  /// words.add_gradients({{"weight", attn::TensorView(gradient.data(), {1, 2})}});
  /// before.step();
  /// after.load_state_dict(before.state_dict());
  /// std::cout << after.state_dict().at("0.weight.momentum_buffer");  // {{ 1., -1.}}
  /// @endcode
  template <class Of = Optimizer, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state) {
    load_state(detail::StateInput(state, "load_state_dict").views);
  }

  /// Restores the state from memory, row-major and without gaps, as load_state_dict().
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::SGD optimizer({words}, {.momentum = 0.9});
  /// const std::vector<float> momentum{0.5F, 0.25F};
  /// optimizer.load_state({{"0.weight.momentum_buffer", attn::TensorView(momentum.data(), {1, 2})}});
  /// std::cout << optimizer.state_dict().at("0.weight.momentum_buffer");  // {{ 0.5 , 0.25}}
  /// @endcode
  void load_state(const StateView& state);
  /// Copies the state to memory, each buffer as large as state_shapes() specifies.
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::SGD optimizer({words}, {.momentum = 0.9});
  /// const std::vector<float> momentum{0.5F, 0.25F};
  /// optimizer.load_state({{"0.weight.momentum_buffer", attn::TensorView(momentum.data(), {1, 2})}});
  /// std::vector<float> copy(2);
  /// optimizer.save_state({{"0.weight.momentum_buffer", copy.data()}});
  /// std::cout << copy.at(1);  // 0.25
  /// @endcode
  void save_state(const StateTarget& target) const;
  /// Returns the shape of each entry of state_dict() by its name.
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// attn::AdamW optimizer({words});
  /// const std::vector<float> gradient{1, -1};
  /// words.add_gradients({{"weight", attn::TensorView(gradient.data(), {1, 2})}});
  /// optimizer.step();
  /// std::cout << to_string(optimizer.state_shapes().at("0.weight.exp_avg"));  // (1,2)
  /// @endcode
  std::map<std::string, Shape> state_shapes() const;

 protected:
  static constexpr std::size_t kMostSlots = 2;
  struct Common {
    std::string_view name;               ///< name of the optimiser in messages
    double learning_rate, weight_decay;  ///< defaults for parameters without a group
    std::span<const ParameterGroup> groups;
    std::span<const std::string_view> slots;  ///< PyTorch's names of the state that is stored for each number of a parameter
    bool has_step;                            ///< whether the state also contains the number of steps
  };
  /// Throws ARGUMENT, CONFIG, UNSUPPORTED.
  Optimizer(std::vector<ModuleRef> modules, const Common& common);
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Some numbers of one parameter, with their gradients and state.
  struct Numbers {
    float* values;
    const float* gradient;
    std::array<float*, kMostSlots> slots;
    std::size_t count;
  };
  struct Rates {
    double learning_rate, weight_decay;
    std::int64_t step;  ///< counts from 1
  };
  virtual void update(const Rates& rates, const Numbers& x) const noexcept = 0;

 private:
  /// State of one parameter.
  struct Kept {
    std::size_t module = 0;
    std::string name;
    Shape shape;
    double learning_rate = 0, weight_decay = 0;
    std::int64_t steps = 0;
    std::array<std::vector<float>, kMostSlots> slots;  ///< empty before the first step
  };
  struct Work;

  std::string state_name(const Kept& kept, std::string_view what) const;
  void run(std::span<const Work> work) const;

  std::string name_;
  std::vector<ModuleRef> modules_;
  double learning_rate_, first_learning_rate_;
  std::vector<std::string_view> slot_names_;
  bool has_step_;
  std::vector<Kept> parameters_;  // in the order of modules and names
};

namespace detail {

/// Throws CONFIG unless the number is finite and at least 0, or above 0 if `above`.
double check_at_least_0(std::string_view op, std::string_view name, double value, bool above = false);

}  // namespace detail
}  // namespace attn
