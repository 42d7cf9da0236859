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

/// Types with named parameters and gradients: all modules.
template <class T>
concept Trainable = requires(T& module, const T& same) {
  { module.state_tensors() } -> std::same_as<detail::StateTensors>;
  { same.is_quantized() } -> std::same_as<bool>;
  { module.share_gradients() } -> std::same_as<const std::shared_ptr<detail::GradientPlace::Shared>&>;
};

/// Refers to a module of any class, and detects whether it has been destroyed or moved.
/// @code
/// attn::Embedding words({.num_embeddings = 3, .embedding_dim = 2});
/// const attn::ModuleRef ref(words);
/// std::cout << ref.is_there() << ' ' << ref.is_same(words) << ' ' << ref.is_quantized();  // 1 1 0
/// @endcode
class ModuleRef {
 public:
  /// Refers to a layer or model, which must outlive its use.
  template <Trainable Layer>
  ModuleRef(Layer& module)
      : module_(&module),
        state_tensors_([](void* of) { return static_cast<Layer*>(of)->state_tensors(); }),
        is_quantized_([](const void* of) { return static_cast<const Layer*>(of)->is_quantized(); }),
        shared_(module.share_gradients()),
        place_(shared_->place) {}

  /// Returns whether the module is still at its original address. The other functions require that.
  bool is_there() const { return shared_->place == place_; }
  /// Returns whether both refer to the same module.
  bool is_same(const ModuleRef& other) const { return shared_ == other.shared_; }
  /// Returns whether the module's weights are int8.
  bool is_quantized() const { return is_quantized_(module_); }
  detail::StateTensors state_tensors() const { return state_tensors_(module_); }
  detail::Gradients& gradients() const { return shared_->gradients; }
  /// Discards the values that a forward saved for backward(), because they belong to the old weights.
  void weights_changed() const { shared_->weights_changed(); }

 private:
  void* module_;
  detail::StateTensors (*state_tensors_)(void*);
  bool (*is_quantized_)(const void*);
  std::shared_ptr<detail::GradientPlace::Shared> shared_;
  const detail::GradientPlace* place_;
};

namespace detail {

/// Throws ARGUMENT if the list is empty, or if a module occurs twice, was destroyed or was moved; UNSUPPORTED for an
/// int8 module.
void check_modules(std::string_view op, const std::vector<ModuleRef>& modules);

}  // namespace detail
}  // namespace attn
