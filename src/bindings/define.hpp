#pragma once

#include <emscripten/bind.h>

#include <algorithm>
#include <memory>
#include <string>

#include "attn/layers/module.hpp"
#include "modules.hpp"
#include "signature.hpp"

namespace attn::bindings {

template <auto Function>
void define_function(const char* name, const char* result) {
  add_signature(nullptr, name, result, &call<Function>);
  emscripten::function(name, +[](Address frame) { return run(frame, nullptr, &call<Function>); });
}

namespace module {

template <class Self>
void load_state_dict(Arguments& arguments, Work<Self> work) {
  const StateView* state = arguments.state("state");
  bool strict = true;
  arguments.group("options", [&] { arguments.option("strict", strict); });
  work([&](Self& self, Result&) { self.load_state(*state, strict); });
}

inline void state_dict(Arguments&, Work<Module> work) {
  work([&](Module& self, Result& result) {
    StateTarget target;
    for (const auto& [name, shape] : self.parameter_shapes()) target.emplace(name, result.add(name, shape));
    self.save_state(target);
  });
}

inline void quantize(Arguments&, Work<Module> work) {
  work([&](Module& self, Result&) { self.quantize(); });
}

inline void int8_state_dict(Arguments&, Work<Module> work) {
  work([&](Module& self, Result& result) {
    StateTarget target;
    for (const auto& [name, shape] : self.parameter_shapes())
      target.emplace(name, self.is_quantized() && shape.rank() == 2 ? result.add_int8(name, shape) : StatePlace(result.add(name, shape)));
    self.save_state(target);
  });
}

inline void initialize(Arguments& arguments, Work<Module> work) {
  InitOptions options;
  arguments.group("options", [&] {
    arguments.option("scheme", options.scheme, kInitSchemeNames);
    arguments.option("seed", options.seed);
    arguments.option("std", options.std);
  });
  work([&](Module& self, Result&) { self.initialize(options); });
}

inline void train(Arguments& arguments, Work<Module> work) {
  TrainOptions options;
  arguments.group("options", [&] { arguments.option("seed", options.seed); });
  work([&](Module& self, Result&) { self.train(options); });
}

inline void eval(Arguments&, Work<Module> work) {
  work([&](Module& self, Result&) { self.eval(); });
}

inline void parameter_count(Arguments&, Work<Module> work) {
  work([&](Module& self, Result& result) { result.set_number(static_cast<double>(self.parameter_count())); });
}

template <class Self>
void parameter_shapes(Arguments&, Work<Self> work) {
  work([&](Self& self, Result& result) { result.add(self.parameter_shapes()); });
}

inline void gradients(Arguments&, Work<Module> work) {
  work([&](Module& self, Result& result) {
    const attn::detail::Gradients& from = self.share_gradients()->gradients;
    for (const auto& [name, shape] : from.shapes()) std::copy_n(from.find(name), checked_size(shape, "gradients", name), result.add(name, shape));
  });
}

inline void zero_grad(Arguments&, Work<Module> work) {
  work([&](Module& self, Result&) { self.zero_grad(); });
}

}  // namespace module

template <class T, auto Options>
class Class {
 public:
  explicit Class(const char* name) : name_(name), class_(name) {
    add_signature(name_, "constructor", "none", [](void*, Arguments& arguments, Result*) { static_cast<void>(Options(arguments)); });
    class_.constructor(&construct);
  }

  /// Classes share the code of a method of their base class.
  template <auto Function>
  Class& method(const char* name, const char* result) {
    add_signature(name_, name, result, &call<Function>);
    class_.function(name, &invoke<Function>);
    return *this;
  }
  emscripten::class_<T>& embind() { return class_; }

 private:
  static std::unique_ptr<T> construct(Address frame) {
    return guard([&] {
      Arguments arguments(frame);
      return std::make_unique<T>(Options(arguments));
    });
  }

  template <auto Function>
  static Address invoke(T& self, Address frame) {
    return run(frame, static_cast<SelfOf<Function>*>(&self), &call<Function>);
  }

  const char* name_;
  emscripten::class_<T> class_;
};

template <class Layer, auto Options>
Class<Layer, Options> define_layer(const char* name) {
  Class<Layer, Options> layer(name);
  layer.template method<module::load_state_dict<Module>>("loadStateDict", "none");
  layer.template method<module::state_dict>("stateDict", "tensors");
  layer.template method<module::quantize>("quantize", "none");
  layer.template method<module::int8_state_dict>("int8StateDict", "int8_tensors");
  layer.template method<module::initialize>("initialize", "none");
  layer.template method<module::train>("train", "none");
  layer.template method<module::eval>("eval", "none");
  layer.template method<module::parameter_count>("parameterCount", "property");
  layer.template method<module::parameter_shapes<Module>>("parameterShapes", "shapes");
  layer.template method<module::gradients>("gradients", "tensors");
  layer.template method<module::zero_grad>("zeroGrad", "none");
  layer.embind().function(
      "addTo", +[](Layer& self, Address list) { guard([&] { reinterpret_cast<ModuleList*>(list)->add(static_cast<Module&>(self)); }); });
  return layer;
}

}  // namespace attn::bindings
