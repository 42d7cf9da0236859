#pragma once

#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/gradients.hpp"
#include "attn/layers/module.hpp"
#include "attn/layers/parameter.hpp"

namespace attn {

/// What has parameters with gradients by their names: a module of any class.
template <class T>
concept Trainable = requires(T& module, const T& same) {
  { module.state_parameters() } -> std::same_as<detail::StateParameters>;
  { same.parameter_shapes() } -> std::same_as<std::map<std::string, Shape>>;
  { same.is_quantized() } -> std::same_as<bool>;
  { module.share_gradients() } -> std::same_as<const std::shared_ptr<detail::GradientPlace::Shared>&>;
};

/// A module of any class, as lists of them take it. Refers to the module, and sees when that has been destroyed or moved elsewhere.
class ModuleRef {
 public:
  template <Trainable Layer>
  ModuleRef(Layer& module)
      : module_(&module),
        state_parameters_([](void* of) { return static_cast<Layer*>(of)->state_parameters(); }),
        parameter_shapes_([](const void* of) { return static_cast<const Layer*>(of)->parameter_shapes(); }),
        is_quantized_([](const void* of) { return static_cast<const Layer*>(of)->is_quantized(); }),
        shared_(module.share_gradients()),
        place_(shared_->place) {}

  /// Whether the module is where it was when this was made. The others need it to be.
  bool is_there() const { return shared_->place == place_; }
  bool is_same(const ModuleRef& other) const { return shared_ == other.shared_; }
  bool is_quantized() const { return is_quantized_(module_); }
  std::map<std::string, Shape> parameter_shapes() const { return parameter_shapes_(module_); }
  detail::StateParameters state_parameters() const { return state_parameters_(module_); }
  detail::Gradients& gradients() const { return shared_->gradients; }
  /// Ends what a forward kept for backward(), whose weights it was.
  void weights_changed() const { shared_->kept.reset(); }

 private:
  void* module_;
  detail::StateParameters (*state_parameters_)(void*);
  std::map<std::string, Shape> (*parameter_shapes_)(const void*);
  bool (*is_quantized_)(const void*);
  std::shared_ptr<detail::GradientPlace::Shared> shared_;
  const detail::GradientPlace* place_;
};

namespace detail {

/// Throws ARGUMENT for an empty list, a module that is in it twice or has gone, UNSUPPORTED for one that is int8.
void check_modules(std::string_view op, const std::vector<ModuleRef>& modules);

}  // namespace detail
}  // namespace attn
