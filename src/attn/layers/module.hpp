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

/// Base of all layers, as torch.nn.Module. The layer itself (CRTP) provides:
///   add_shapes(prefix, state, shapes)   adds its parameters by name, in the form that the state (or null) uses
///   save(prefix, target)                copies weights to the places of their names
///   loaded(prefix, state)               returns a layer with the state's weights and its own for missing ones; or
///   load(state)                         the same in place: on MEMORY nothing has changed
///   drawn(options, parameter)           returns a layer with random weights; `parameter` counts them
///   add_parameters(prefix, parameters)  adds the addresses of its weights; projections of attention separately
///   make_int8()                         converts its two-dimensional weights (out,in)
///   is_quantized()
template <class Layer>
class Module {
 public:
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;  // weights are large: load_state_dict(other.state_dict()) copies them where that is meant

  /// Copies weights in, by torch's names and layouts.
  ///
  /// @param state   tensors by name
  /// @param strict  true: every parameter must be given and nothing else; false: missing ones keep their numbers,
  /// unknown ones are ignored
  /// @throws MISMATCH with all missing, unexpected and mis-shaped names; nothing has changed then
  /// @throws MEMORY if the copy exceeds the memory limit
  ///
  /// @code
  /// attn::MultiHeadAttention a({.embed_dim = 4, .num_heads = 2}), b({.embed_dim = 4, .num_heads = 2});
  /// b.load_state_dict(a.state_dict());
  /// std::cout << (b.state_dict().at("out_proj.weight") == a.state_dict().at("out_proj.weight"));  // 1
  /// @endcode
  template <class Of = Layer, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// Returns a copy of the weights under torch's names.
  template <class Of = Layer>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : parameter_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// Copies weights in from memory: row-major, without gaps, each with the shape in parameter_shapes(). Errors as
  /// load_state_dict(), which also takes views with strides.
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
  /// Copies weights out to memory: row-major, each place as large as parameter_shapes() specifies.
  void save_state(const StateTarget& target) const { layer().save("", target); }
  /// Converts the weights of linear maps and an embedding's table to int8 with one scale per row. The float32 weights
  /// are freed, and state_dict() returns scale · data. Inputs are quantized by row in each forward; everything else
  /// stays float32, and results have the same bits on every machine. load_state_dict() and initialize() return to
  /// float32.
  ///
  /// @throws FORMAT if a weight holds NaN or infinity
  /// @throws UNSUPPORTED if a row is longer than 65536; nothing has changed after an error
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 3, .embedding_dim = 2});
  /// words.quantize();
  /// std::cout << words.int8_state_dict().at("weight").scale.size();  // 3
  /// @endcode
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
  /// Returns the int8 weights by the names of state_dict(), without parameters that stay float32; empty before
  /// quantize().
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
  /// Draws new weights from torch's distributions. The numbers depend only on the seed, on every machine; a new layer
  /// has been initialised from seed 0.
  ///
  /// @throws CONFIG unless std is between 0 and 1e37
  /// @throws MEMORY if the weights exceed the memory limit
  void initialize(const InitOptions& options = {}) {
    check_init_options("initialize", options);
    std::uint32_t parameter = 0;
    replace(layer().drawn(options, parameter));
  }

  /// Returns the number of weights.
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const auto& [name, shape] : parameter_shapes()) count += checked_size(shape, "parameter_count", name);
    return count;
  }
  /// Returns the shape of each parameter by the names of state_dict().
  std::map<std::string, Shape> parameter_shapes() const {
    std::map<std::string, Shape> shapes;
    layer().add_shapes("", nullptr, shapes);
    return shapes;
  }

  /// Returns copies of the gradients that backward() has added up since zero_grad(), by the names of state_dict(),
  /// for those parameters that have one. Replacing the weights (load_state_dict, initialize, quantize) discards them;
  /// an optimiser's step does not.
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
  /// Removes all gradients, as in torch; their memory is reused.
  void zero_grad() {
    if (detail::Gradients* gradients = gradients_.get()) gradients->zero();
  }
  /// Adds gradients that were computed elsewhere.
  ///
  /// @param gradients  by the names of state_dict()
  /// @throws MISMATCH if no parameter has that name or shape
  /// @throws UNSUPPORTED for an int8 module
  /// @throws MEMORY if they exceed the memory limit; nothing has been added after an error
  void add_gradients(const StateView& gradients) {
    detail::check_float32("add_gradients", "the module", layer().is_quantized());
    detail::add_gradients(gradients_.share()->gradients, parameter_shapes(), gradients);
  }
  /// Gradients for accumulation in place and for optimisers, which refer to them longer.
  const std::shared_ptr<detail::GradientPlace::Shared>& share_gradients() const { return gradients_.share(); }
  /// Addresses of the parameters by the names of state_dict(); valid until weights are replaced as a whole.
  detail::StateParameters state_parameters() {
    detail::Parameters parameters;
    layer().add_parameters("", parameters);
    return detail::state_parameters(parameters, parameter_shapes());
  }

  /// Switches dropout on and makes forwards save what backward() needs. The next forward is step 0 of the random
  /// numbers, and each forward takes the next step, so forwards of a module in train mode must not overlap.
  void train(const TrainOptions& options = {}) { random_ = {.training = true, .seed = options.seed}; }
  /// Switches dropout off, as in a new layer.
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
