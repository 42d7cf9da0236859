#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/layers/gradients.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/layers/state_dict.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/ops/init.hpp"
#include "attn/store/scratch.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

struct TrainOptions {
  std::uint64_t seed = 0;
};

namespace detail {

/// Says that a layer's numbers come later: its own constructor, without the drawing of weights.
struct Uninitialized {};

/// Random numbers of one forward of a whole module.
struct ForwardRandom {
  bool training = false;
  const DropoutProbabilities* probabilities = nullptr;  ///< a checkpoint's, instead of the layers' own
  std::uint64_t seed = 0, step = 0;
};

/// Dropout at one place of one layer; keeps everything unless training.
inline Dropout dropout_at(const ForwardRandom& random, float probability, DropoutSite site, std::uint32_t layer) {
  if (!random.training) return {};
  if constexpr (kHasGradients)  // nobody else has such
    if (random.probabilities != nullptr) probability = random.probabilities->at(site);
  return {probability, random.seed, random.step, site, layer};
}

}  // namespace detail

/// What every layer has, as torch.nn.Module. Layer is the class itself, which gives
///   add_shapes(prefix, state, shapes)  the parameters by name, in the form in which the state (or null) spells them
///   save(prefix, target)               copies of them to where the target has their names
///   loaded(prefix, state)              a layer of the same options with the numbers of the state, its own where there are none; or
///   load(state)                        the same in place, for a layer whose old numbers need not survive a lack of memory
///   drawn(options, parameter)          one with new random numbers; `parameter` counts them
///   add_parameters(prefix, parameters) where they lie, for who changes them in place; projections of attention in the separate form
///   make_int8()                        its weights (out,in) become int8, which are those of two dimensions
///   is_quantized()                     whether they are
template <class Layer>
class Module {
 public:
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;  // weights are large: load_state_dict(other.state_dict()) copies them where that is meant

  /// Copies weights in, by torch's names and layouts. strict: every parameter must be there and nothing else; else missing ones
  /// keep their numbers and unknown ones are ignored. Throws MISMATCH, which lists all missing, unexpected and mis-shaped names,
  /// or MEMORY; nothing is changed then.
  template <class Of = Layer, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// A copy of the weights, in the form that torch would have.
  template <class Of = Layer>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : parameter_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// The same of places in memory, row-major and without gaps (load_state_dict takes views of any kind): from where they lie, and to
  /// where they shall be, each as large as parameter_shapes() says.
  void load_state(const StateView& state, bool strict = true) {
    std::map<std::string, Shape> shapes;
    layer().add_shapes("", &state, shapes);
    detail::check_state_dict("load_state_dict", shapes, state, strict);
    if constexpr (requires(Layer& given) { given.load(state); }) {
      layer().load(state);
      gradients_ = {};
    } else {
      replace(layer().loaded("", state));
    }
  }
  void save_state(const StateTarget& target) const { layer().save("", target); }
  /// Weights of linear maps, and an embedding's table, become int8 with a scale for each row, rounded; their float32 is gone: state_dict()
  /// gives scale · data. x is quantized row by row when it meets them. Everything else stays float32, and results have the same bits on
  /// every machine. What is int8 already stays so; load_state_dict() and initialize() make it float32 again. Throws FORMAT for a weight
  /// with NaN or infinity, UNSUPPORTED for rows longer than 65536; nothing is changed then.
  void quantize() {
    if (layer().is_quantized()) return;
    for (const auto& [name, shape] : parameter_shapes()) {
      if (shape.rank() != 2) continue;
      std::vector<float> values(static_cast<std::size_t>(checked_size(shape, "quantize", name)));
      save_state({{name, values.data()}});
      detail::check_int8_weight("quantize", name, shape, values);
    }
    layer().make_int8();
    if constexpr (detail::kHasGradients) gradients_ = {};
  }
  /// What quantize() made of the weights, by the names of state_dict(); of all else nothing, and nothing before it.
  std::map<std::string, Int8Weight> int8_state_dict() const {
    std::map<std::string, Int8Weight> state;
    if (!layer().is_quantized()) return state;
    StateTarget target;
    for (const auto& [name, shape] : parameter_shapes()) {
      if (shape.rank() != 2) continue;
      Int8Weight& weight = state[name];
      weight.data.resize(static_cast<std::size_t>(checked_size(shape, "int8_state_dict", name)));
      weight.scale.resize(static_cast<std::size_t>(shape[0]));
      weight.shape = shape;
      target.emplace(name, StatePlace(weight.data.data(), weight.scale.data()));
    }
    save_state(target);
    return state;
  }
  /// Draws new weights; a new layer has been initialised already. The numbers follow from the seed alone, on every machine; the
  /// distributions are torch's. Throws CONFIG, MEMORY.
  void initialize(const InitOptions& options = {}) {
    check_init_options("initialize", options);
    std::uint32_t parameter = 0;
    replace(layer().drawn(options, parameter));
  }

  /// Number of parameters.
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const auto& [name, shape] : parameter_shapes()) count += checked_size(shape, "parameter_count", name);
    return count;
  }
  /// By the names of state_dict().
  std::map<std::string, Shape> parameter_shapes() const {
    std::map<std::string, Shape> shapes;
    layer().add_shapes("", nullptr, shapes);
    return shapes;
  }

  /// Copies of the gradients that backward() has added up since zero_grad(), by the names of state_dict(): of those parameters alone that
  /// have one. Whatever replaces weights as a whole (load_state_dict, initialize, quantize) ends them; an optimiser's step leaves them.
  template <class Of = Layer>
  typename StateDictType<Of>::type gradients() const {
    typename StateDictType<Of>::type state;
    if (const detail::Gradients* from = gradients_.get())
      for (const auto& [name, shape] : from->shapes()) {
        auto& gradient = state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second;
        std::copy_n(from->find(name), gradient.size(), gradient.data());
      }
    return state;
  }
  /// No parameter has a gradient any more, as in torch; their memory stays for the next ones.
  void zero_grad() {
    if (detail::Gradients* gradients = gradients_.get()) gradients->zero();
  }
  /// For backward(): adds gradients to those that there are. Throws MISMATCH for a name or a shape that no parameter has, UNSUPPORTED for a
  /// module whose weights are int8, MEMORY; nothing is added then.
  void add_gradients(const StateView& gradients) {
    detail::check_float32("add_gradients", "the module", layer().is_quantized());
    detail::add_gradients(gradients_.share()->gradients, parameter_shapes(), gradients);
  }
  /// The same for who adds in place, and for optimisers, who refer to it longer.
  const std::shared_ptr<detail::GradientPlace::Shared>& share_gradients() const { return gradients_.share(); }
  /// Where parameters lie, by the names of state_dict(). They stay there until weights are replaced as a whole.
  detail::StateParameters state_parameters() {
    detail::Parameters parameters;
    layer().add_parameters("", parameters);
    return detail::state_parameters(parameters, parameter_shapes());
  }

  /// Dropout on, and forwards keep what backward() needs. Step 0 is the next forward's, and each takes the next one; so forwards of a module in
  /// training must not overlap.
  void train(const TrainOptions& options = {}) { random_ = {.training = true, .seed = options.seed}; }
  /// Dropout off, as in a new layer.
  void eval() { random_ = {}; }

 protected:
  Module() = default;
  /// What this forward draws from. The next one gets other numbers.
  detail::ForwardRandom next_random() const {
    detail::ForwardRandom now = random_;
    if (random_.training) ++random_.step;
    return now;
  }
  /// Whether a forward keeps what backward() needs.
  bool keeps(bool for_backward) const { return for_backward || random_.training; }
  /// For backward(): what a layer of type Kept kept. Throws UNSUPPORTED for int8, ARGUMENT where there is nothing.
  template <class Kept>
  Kept& kept(std::string_view op) const {
    detail::check_float32(op, "the layer", layer().is_quantized());
    const auto& shared = gradients_.share();
    if (shared->kept == nullptr)
      detail::fail(ErrorCode::argument, op, "backward", {"a forward with for_backward or in train mode before it"}, {"called without such a forward"},
                   "Each such forward allows one backward, before weights change");
    return *static_cast<Kept*>(shared->kept.get());
  }
  /// Memory for one forward.
  detail::Scratch scratch() const { return detail::Scratch(&workspace_); }

 private:
  Layer& layer() { return static_cast<Layer&>(*this); }
  const Layer& layer() const { return static_cast<const Layer&>(*this); }
  /// New numbers, the same mode.
  void replace(Layer next) {
    static_cast<Module&>(next).random_ = random_;
    layer() = std::move(next);
  }

  mutable detail::ForwardRandom random_;
  mutable detail::Workspace workspace_;
  [[no_unique_address]] mutable detail::ModuleGradients gradients_;
};

}  // namespace attn
