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

/// Parameters whose names match take these options instead of the optimiser's; of several groups the first that
/// matches.
struct ParameterGroup {
  std::function<bool(const std::string& name)> names;  ///< by the names of state_dict(), of each module
  std::optional<double> learning_rate = std::nullopt;  ///< above 0
  std::optional<double> weight_decay = std::nullopt;   ///< 0 or above
};

/// What all optimisers have (torch.optim.Optimizer). It refers to its modules, which must stay where they are and
/// float32, and leaves parameters alone that have no gradient. All arithmetic is float32 by torch's formulas in
/// torch's order, number by number, without fused operations: the same bits on every machine and with any number of
/// threads. NaN in a gradient goes into its parameter, as in torch.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Takes one step along the gradients that exist. If a context's executor throws, the step is completed first. New
  /// weights from elsewhere (load_state_dict) discard gradients, not the optimiser's own state.
  ///
  /// @throws ARGUMENT if a module was destroyed, moved or given other shapes
  /// @throws UNSUPPORTED if a module has become int8
  /// @throws MEMORY if the state exceeds the memory limit; no weight has changed after an error
  void step();
  /// Removes the gradients of all modules.
  ///
  /// @throws ARGUMENT, UNSUPPORTED as step()
  void zero_grad();

  double learning_rate() const { return learning_rate_; }
  /// Sets the learning rate. A group's own rate changes in the same proportion, as by torch's schedulers.
  ///
  /// @param learning_rate  0 or above; schedules begin and end at 0
  /// @throws CONFIG if it is negative or not finite
  void set_learning_rate(double learning_rate);

  /// Returns the state of each parameter that has taken a step, under torch's names behind "<index of the
  /// module>.<name>.", for example "0.linear1.weight.exp_avg". Options are not included.
  template <class Of = Optimizer>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : state_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// Restores such a state. Parameters that it does not name count as without steps.
  ///
  /// @throws MISMATCH with all unexpected, mis-shaped and incomplete names
  /// @throws ARGUMENT if a step is no whole number from 1 to 2²⁴
  /// @throws MEMORY if the copy exceeds the memory limit; nothing has changed after an error
  template <class Of = Optimizer, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state) {
    load_state(detail::StateInput(state, "load_state_dict").views);
  }

  /// Restores the state from memory, row-major and without gaps, as load_state_dict().
  void load_state(const StateView& state);
  void save_state(const StateTarget& target) const;
  std::map<std::string, Shape> state_shapes() const;

 protected:
  static constexpr std::size_t kMostSlots = 2;
  struct Common {
    std::string_view name;               ///< of the optimiser, in messages
    double learning_rate, weight_decay;  ///< where no group says otherwise
    std::span<const ParameterGroup> groups;
    std::span<const std::string_view> slots;  ///< numbers that it keeps for each number of a parameter: torch's names for them
    bool has_step;                            ///< whether the state has the number of steps as well
  };
  /// Throws ARGUMENT, CONFIG, UNSUPPORTED.
  Optimizer(std::vector<ModuleRef> modules, const Common& common);
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  /// Some numbers of one parameter, and what belongs to them.
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
  /// What it knows of one parameter.
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
  std::vector<Kept> parameters_;  // modules in their order, names in theirs
};

namespace detail {

/// Throws CONFIG unless the number is finite and at least 0, or above 0 as well where it says so.
double check_at_least_0(std::string_view op, std::string_view name, double value, bool above = false);

}  // namespace detail
}  // namespace attn
