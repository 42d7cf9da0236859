#include <emscripten/bind.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "attn/train/adam.hpp"
#include "attn/train/clip_grad_norm.hpp"
#include "attn/train/sgd.hpp"
#include "define.hpp"
#include "modules.hpp"

namespace attn::bindings {

void ParameterGroups::add(Address frame) {
  Arguments arguments(frame);
  ParameterGroup group;
  arguments.option("learningRate", group.learning_rate);
  arguments.option("weightDecay", group.weight_decay);
  const std::span<const std::uint8_t> bytes = arguments.bytes("names", "names");
  std::set<std::string> names;
  for (auto start = bytes.begin(); start != bytes.end();) {
    const auto end = std::find(start, bytes.end(), '\n');
    names.emplace(start, end);
    start = end != bytes.end() ? end + 1 : end;
  }
  group.names = [names = std::move(names)](const std::string& name) { return names.contains(name); };
  groups_.push_back(std::move(group));
}

namespace {

template <class Options>
struct Given {
  std::vector<ModuleRef> modules;
  Options options;
};

template <class Optimizer, class Options>
struct Bound : Optimizer {
  explicit Bound(Given<Options> given) : Optimizer(std::move(given.modules), given.options) {}
};

template <class Options, class Members>
Given<Options> given(Arguments& arguments, Members members) {
  Given<Options> out;
  out.modules = modules(arguments, "modules");
  arguments.group("options", [&] {
    arguments.option("learningRate", out.options.learning_rate);
    members(out.options);
    arguments.option("weightDecay", out.options.weight_decay);
    if (const auto* groups = arguments.object<ParameterGroups>("groups", "groups", false)) out.options.groups = groups->groups();
  });
  return out;
}

Given<SGDOptions> sgd(Arguments& arguments) {
  return given<SGDOptions>(arguments, [&](SGDOptions& options) {
    arguments.option("momentum", options.momentum);
    arguments.option("dampening", options.dampening);
    arguments.option("nesterov", options.nesterov);
  });
}

template <class Options>
Given<Options> adam(Arguments& arguments) {
  return given<Options>(arguments, [&](Options& options) {
    arguments.option("betas", options.betas);
    arguments.option("eps", options.eps);
  });
}

void step(Arguments&, Work<attn::Optimizer> work) {
  work([&](attn::Optimizer& self, Result&) { self.step(); });
}

void zero_grad(Arguments&, Work<attn::Optimizer> work) {
  work([&](attn::Optimizer& self, Result&) { self.zero_grad(); });
}

void learning_rate(Arguments&, Work<attn::Optimizer> work) {
  work([&](attn::Optimizer& self, Result& result) { result.set_number(self.learning_rate()); });
}

void set_learning_rate(Arguments& arguments, Work<attn::Optimizer> work) {
  double value = 0;
  arguments.require("learningRate", value);
  work([&](attn::Optimizer& self, Result&) { self.set_learning_rate(value); });
}

void state_dict(Arguments&, Work<attn::Optimizer> work) {
  work([&](attn::Optimizer& self, Result& result) {
    StateTarget target;
    for (const auto& [name, shape] : self.state_shapes()) target.emplace(name, result.add(name, shape));
    self.save_state(target);
  });
}

void load_state_dict(Arguments& arguments, Work<attn::Optimizer> work) {
  const StateView* state = arguments.state("state");
  work([&](attn::Optimizer& self, Result&) { self.load_state(*state); });
}

template <class Optimizer, class Options, auto Read>
void define_optimizer(const char* name) {
  Class<Bound<Optimizer, Options>, Read>(name)
      .template method<step>("step", "none")
      .template method<zero_grad>("zeroGrad", "none")
      .template method<learning_rate>("learningRate", "property")
      .template method<set_learning_rate>("setLearningRate", "none")
      .template method<state_dict>("stateDict", "tensors")
      .template method<load_state_dict>("loadStateDict", "none");
}

void clip_grad_norm(Arguments& arguments, Work<> work) {
  std::vector<ModuleRef> list = modules(arguments, "modules");
  const double max_norm = arguments.limit("maxNorm");
  work([&](Result& result) { result.set_number(attn::clip_grad_norm(list, max_norm)); });
}

template <class List>
emscripten::class_<List> define_list(const char* name) {
  return emscripten::class_<List>(name)
      .constructor(+[] { return guard([] { return std::make_unique<List>(); }); })
      .function("address", &List::address);
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_optimizers) {
  using namespace attn;
  using namespace attn::bindings;
  define_optimizer<SGD, SGDOptions, sgd>("SGD");
  define_optimizer<Adam, AdamOptions, bindings::adam<AdamOptions>>("Adam");
  define_optimizer<AdamW, AdamWOptions, bindings::adam<AdamWOptions>>("AdamW");
  define_function<bindings::clip_grad_norm>("clipGradNorm", "number");
  define_list<ModuleList>("ModuleList");
  define_list<ParameterGroups>("ParameterGroups").function("add", +[](ParameterGroups& self, Address frame) { guard([&] { self.add(frame); }); });
}
