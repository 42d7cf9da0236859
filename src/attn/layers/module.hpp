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
#include "attn/memory/scratch.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/ops/init.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Options for Module::train().
struct TrainOptions {
  std::uint64_t seed = 0;
};

namespace detail {

/// Tag for constructors that do not initialize the weights.
struct Uninitialized {};

/// Random numbers for one forward of a whole module.
struct ForwardRandom {
  bool training = false;
  const DropoutProbabilities* probabilities = nullptr;  ///< from a checkpoint, instead of the layers' own
  std::uint64_t seed = 0, step = 0;
};

/// Returns the dropout at one site of one layer; inactive unless training.
inline Dropout dropout_at(const ForwardRandom& random, float probability, DropoutSite site, std::uint32_t layer) {
  if (!random.training) return {};
  if (random.probabilities != nullptr) probability = random.probabilities->at(site);
  return {probability, random.seed, random.step, site, layer};
}

}  // namespace detail

/// Base class of all layers, as torch.nn.Module.
class Module {
 public:
  virtual ~Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  Module(const Module&) = delete;  // weights are large: copy them explicitly with load_state_dict(other.state_dict())

  /// Loads weights with torch's names and layouts.
  ///
  /// @param state   tensors by name
  /// @param strict  true: names must be exactly those of the parameters; false: missing parameters keep their values,
  /// unknown names are ignored
  /// @throws MISMATCH with all missing, unexpected and mis-shaped names; nothing has changed then
  /// @throws MEMORY if an int8 layer's float32 weights exceed the memory limit; nothing has changed then
  ///
  /// @code
  /// attn::MultiHeadAttention a({.embed_dim = 4, .num_heads = 2}), b({.embed_dim = 4, .num_heads = 2});
  /// b.load_state_dict(a.state_dict());
  /// std::cout << (b.state_dict().at("out_proj.weight") == a.state_dict().at("out_proj.weight"));  // 1
  /// @endcode
  template <class Of = Module, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// Returns a copy of the weights under torch's names.
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  /// std::cout << layer.state_dict().at("in_proj_weight").shape(0);  // 12
  /// @endcode
  template <class Of = Module>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : parameter_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// Loads weights from memory: row-major, without gaps, each with the shape in parameter_shapes(). Throws as
  /// load_state_dict(), which also accepts strided views.
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// const std::vector<float> numbers{1, 2, 3, 4};
  /// words.load_state({{"weight", attn::TensorView(numbers.data(), {2, 2})}});
  /// std::cout << words.row(1).at(0);  // 3
  /// @endcode
  void load_state(const StateView& state, bool strict = true) {
    detail::load_state(tensors(&state), state, strict);
    gradients_ = {};
  }
  /// Copies the weights to memory: row-major, each buffer as large as parameter_shapes() specifies.
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, 2}, {3, 4}}}});
  /// std::vector<float> numbers(4);
  /// words.save_state({{"weight", numbers.data()}});
  /// std::cout << numbers.at(3);  // 4
  /// @endcode
  void save_state(const StateTarget& target) const { detail::save_state(tensors(), target); }
  /// Converts the weights of linear maps and an embedding's table to int8 with one scale per row. The float32 weights
  /// are freed, and state_dict() returns scale · data. Inputs are quantized row by row in each forward; everything else
  /// stays float32. Results have the same bits on every machine. load_state_dict() and initialize() convert back to
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
    if (is_quantized()) return;
    detail::quantize(tensors());
    gradients_ = {};
  }
  /// Returns whether the weights of linear maps and tables are int8.
  /// @code
  /// attn::Embedding words({.num_embeddings = 3, .embedding_dim = 2});
  /// words.quantize();
  /// std::cout << words.is_quantized();  // 1
  /// @endcode
  virtual bool is_quantized() const = 0;
  /// Returns the int8 weights by the names of state_dict(), without parameters that stay float32; empty before
  /// quantize().
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// words.load_state_dict(attn::StateDict{{"weight", xt::xarray<float>{{1, -2}}}});
  /// words.quantize();
  /// const attn::Int8Weight weight = words.int8_state_dict().at("weight");
  /// std::cout << int{weight.data[0]} << ' ' << int{weight.data[1]} << ' ' << weight.scale[0];  // 64 -127 0.015748
  /// @endcode
  std::map<std::string, Int8Weight> int8_state_dict() const { return detail::int8_state(tensors()); }
  /// Draws new weights, by default from torch's distributions. The values depend only on the options and are the same
  /// on every machine; constructors use seed 0.
  ///
  /// @param options  distribution, seed, standard deviation of the normal distribution
  /// @throws CONFIG unless std is between 0 and 1e37
  /// @throws MEMORY if an int8 layer's float32 weights exceed the memory limit; nothing has changed then
  ///
  /// @code
  /// attn::Embedding a({.num_embeddings = 3, .embedding_dim = 2}), b({.num_embeddings = 3, .embedding_dim = 2});
  /// a.initialize({.scheme = attn::InitScheme::normal, .seed = 7, .std = 0.02});
  /// b.initialize({.scheme = attn::InitScheme::normal, .seed = 7, .std = 0.02});
  /// std::cout << (a.row(0) == b.row(0));  // 1
  /// @endcode
  void initialize(const InitOptions& options = {}) {
    check_init_options("initialize", options);
    detail::initialize(tensors(), options);
    gradients_ = {};
  }

  /// Returns the number of weights.
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  /// std::cout << layer.parameter_count();  // 80
  /// @endcode
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const auto& [name, tensor] : tensors()) count += static_cast<std::int64_t>(tensor.size());
    return count;
  }
  /// Returns the shape of each parameter by the names of state_dict().
  /// @code
  /// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
  /// std::cout << to_string(layer.parameter_shapes().at("in_proj_weight"));  // (12,4)
  /// @endcode
  std::map<std::string, Shape> parameter_shapes() const { return detail::shapes_of(tensors()); }

  /// Returns copies of the gradients that backward() has accumulated since zero_grad(), by the names of state_dict(),
  /// for the parameters that have one. Replacing the weights (load_state_dict, initialize, quantize) discards them;
  /// an optimiser's step does not.
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.forward(xt::xtensor<std::int64_t, 1>{1}, {.for_backward = true});
  /// words.backward(xt::xtensor<float, 2>{{3, 4}});
  /// std::cout << words.gradients().at("weight");  // {{ 0.,  0.}, { 3.,  4.}}
  /// @endcode
  template <class Of = Module>
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
  /// @code
  /// attn::Embedding words({.num_embeddings = 2, .embedding_dim = 2});
  /// words.forward(xt::xtensor<std::int64_t, 1>{1}, {.for_backward = true});
  /// words.backward(xt::xtensor<float, 2>{{3, 4}});
  /// words.zero_grad();
  /// std::cout << words.gradients().size();  // 0
  /// @endcode
  void zero_grad() {
    if (detail::Gradients* gradients = gradients_.get()) gradients->zero();
  }
  /// Adds gradients that were computed elsewhere.
  ///
  /// @param gradients  by the names of state_dict()
  /// @throws MISMATCH if no parameter has that name or shape
  /// @throws UNSUPPORTED for an int8 module
  /// @throws MEMORY if they exceed the memory limit; nothing has been added after an error
  ///
  /// @code
  /// attn::Embedding words({.num_embeddings = 1, .embedding_dim = 2});
  /// const std::vector<float> received{0.5F, 0.25F};
  /// words.add_gradients({{"weight", attn::TensorView(received.data(), {1, 2})}});
  /// std::cout << words.gradients().at("weight");  // {{ 0.5 , 0.25}}
  /// @endcode
  void add_gradients(const StateView& gradients) {
    detail::check_float32("add_gradients", "the module", is_quantized());
    detail::add_gradients(gradients_.share()->gradients, parameter_shapes(), gradients);
  }
  /// Returns the gradients, for accumulation in place and for optimisers, which hold on to them.
  const std::shared_ptr<detail::GradientPlace::Shared>& share_gradients() const { return gradients_.share(); }
  /// Returns references to the parameters by the names of state_dict(): writing to them changes the layer.
  detail::StateTensors state_tensors() { return tensors(); }

  /// Switches dropout on and makes forwards save the data for backward(). The next forward uses step 0 of the random
  /// numbers and each further one the next step, so forwards of a module in train mode must not overlap.
  /// @code
  /// attn::TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 8, .dropout = 0.5F});
  /// xt::xtensor<float, 2> x{{1, 2, 3, 4}, {4, 3, 2, 1}};
  /// const auto without = layer.forward(x).output;
  /// layer.train({.seed = 1});
  /// std::cout << (layer.forward(x).output == without);  // 0
  /// @endcode
  void train(const TrainOptions& options = {}) { random_ = {.training = true, .seed = options.seed}; }
  /// Switches dropout off, as in a new layer.
  /// @code
  /// attn::TransformerEncoderLayer layer({.d_model = 4, .nhead = 2, .dim_feedforward = 8, .dropout = 0.5F});
  /// xt::xtensor<float, 2> x{{1, 2, 3, 4}, {4, 3, 2, 1}};
  /// const auto before = layer.forward(x).output;
  /// layer.train();
  /// layer.eval();
  /// std::cout << (layer.forward(x).output == before);  // 1
  /// @endcode
  void eval() { random_ = {}; }

 protected:
  Module() = default;
  /// For constructors: allocates the weights and initializes them as torch does, from seed 0. Throws MEMORY, naming `op`.
  void create(std::string_view op) { detail::create(op, tensors()); }
  /// Returns the random numbers for this forward and advances to those for the next.
  detail::ForwardRandom next_random() const {
    detail::ForwardRandom now = random_;
    if (random_.training && !detail::counts()) ++random_.step;
    return now;
  }
  /// Whether a forward saves the data for backward().
  bool keeps(bool for_backward) const { return for_backward || random_.training; }
  /// For backward(): returns the data that the last forward saved. Throws UNSUPPORTED for an int8 layer, ARGUMENT if nothing is saved.
  template <class Kept>
  Kept& kept(std::string_view op) const {
    detail::check_float32(op, "the layer", is_quantized());
    const auto& shared = gradients_.share();
    if (shared->kept == nullptr)
      detail::fail(ErrorCode::argument, op, "backward", {"a forward with for_backward or in train mode before it"}, {"called without such a forward"},
                   "Each such forward allows one backward, before weights change");
    return *static_cast<Kept*>(shared->kept.get());
  }
  /// Work space for one forward.
  detail::Scratch scratch() const { return detail::Scratch(&workspace_); }

 private:
  friend class detail::ParameterVisitor;
  /// Visits the parameters of the layer; see ParameterVisitor.
  virtual void visit_parameters(detail::ParameterVisitor& visitor) = 0;
  /// Returns the parameters by torch's names, or by those of `state` if given. Parameters of a const layer are only read.
  detail::StateTensors tensors(const StateView* state = nullptr) const {
    detail::ParameterVisitor visitor(detail::ParameterVisitor::Names::torch, state);
    visitor.part("", const_cast<Module&>(*this));
    return visitor.take();
  }

  mutable detail::ForwardRandom random_;
  mutable detail::Workspace workspace_;
  mutable detail::GradientPlace gradients_;
};

}  // namespace attn
