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
  add_signature({nullptr, name, result, &describe<Function>});
  emscripten::function(name, &call<Function>);
}

/// Methods of every layer; a text model has some of them. The work of a method takes the layer as its first argument.
namespace module {

inline auto load_state_dict(Arguments& arguments) {
  const StateView* state = arguments.state("state");
  bool strict = true;
  arguments.group("options", [&] { arguments.option("strict", strict); });
  return [=](auto& self, Result&) { self.load_state(*state, strict); };
}

inline auto state_dict(Arguments&) {
  return [](Module& self, Result& result) {
    StateTarget target;
    for (const auto& [name, shape] : self.parameter_shapes()) target.emplace(name, result.add(name, shape));
    self.save_state(target);
  };
}

inline auto quantize(Arguments&) {
  return [](Module& self, Result&) { self.quantize(); };
}

inline auto int8_state_dict(Arguments&) {
  return [](Module& self, Result& result) {
    StateTarget target;
    for (const auto& [name, shape] : self.parameter_shapes())
      target.emplace(name, self.is_quantized() && shape.rank() == 2 ? result.add_int8(name, shape) : StatePlace(result.add(name, shape)));
    self.save_state(target);
  };
}

inline auto initialize(Arguments& arguments) {
  InitOptions options;
  arguments.group("options", [&] {
    arguments.option("scheme", options.scheme, kInitSchemeNames);
    arguments.option("seed", options.seed);
    arguments.option("std", options.std);
  });
  return [=](Module& self, Result&) { self.initialize(options); };
}

inline auto train(Arguments& arguments) {
  TrainOptions options;
  arguments.group("options", [&] { arguments.option("seed", options.seed); });
  return [=](Module& self, Result&) { self.train(options); };
}

inline auto eval(Arguments&) {
  return [](Module& self, Result&) { self.eval(); };
}

inline auto parameter_count(Arguments&) {
  return [](Module& self, Result& result) { result.set_number(static_cast<double>(self.parameter_count())); };
}

inline auto parameter_shapes(Arguments&) {
  return [](auto& self, Result& result) { result.add(self.parameter_shapes()); };
}

inline auto gradients(Arguments&) {
  return [](Module& self, Result& result) {
    const attn::detail::Gradients& from = self.share_gradients()->gradients;
    for (const auto& [name, shape] : from.shapes()) std::copy_n(from.find(name), checked_size(shape, "gradients", name), result.add(name, shape));
  };
}

inline auto zero_grad(Arguments&) {
  return [](Module& self, Result&) { self.zero_grad(); };
}

}  // namespace module

template <auto Function, class Self>
void work(void* self, Arguments& arguments, Result& result) {
  Function(arguments)(*static_cast<Self*>(self), result);
}

template <class T, auto Options>
class Class {
 public:
  explicit Class(const char* name) : name_(name), class_(name) {
    add_signature({name_, "constructor", "none", &describe<Options>});
    class_.constructor(&construct);
  }

  /// Self: a base class that has what the function uses, so that all its classes share the code.
  template <auto Function, class Self = T>
  Class& method(const char* name, const char* result) {
    add_signature({name_, name, result, &describe<Function>});
    class_.function(name, &invoke<Function, Self>);
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

  template <auto Function, class Self>
  static Address invoke(T& self, Address frame) {
    return run(frame, static_cast<Self*>(&self), &work<Function, Self>);
  }

  const char* name_;
  emscripten::class_<T> class_;
};

template <class Layer, auto Options>
Class<Layer, Options> define_layer(const char* name) {
  Class<Layer, Options> layer(name);
  layer.template method<module::load_state_dict, Module>("loadStateDict", "none");
  layer.template method<module::state_dict, Module>("stateDict", "tensors");
  layer.template method<module::quantize, Module>("quantize", "none");
  layer.template method<module::int8_state_dict, Module>("int8StateDict", "int8_tensors");
  layer.template method<module::initialize, Module>("initialize", "none");
  layer.template method<module::train, Module>("train", "none");
  layer.template method<module::eval, Module>("eval", "none");
  layer.template method<module::parameter_count, Module>("parameterCount", "property");
  layer.template method<module::parameter_shapes, Module>("parameterShapes", "shapes");
  layer.template method<module::gradients, Module>("gradients", "tensors");
  layer.template method<module::zero_grad, Module>("zeroGrad", "none");
  layer.embind().function(
      "addTo", +[](Layer& self, Address list) { guard([&] { reinterpret_cast<ModuleList*>(list)->add(static_cast<Module&>(self)); }); });
  return layer;
}

}  // namespace attn::bindings
