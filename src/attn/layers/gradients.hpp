#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attn/tensor/state.hpp"

// Storage of a module's gradients. Internal.
namespace attn::detail {

/// Gradients by the names of the state, row-major. A parameter has no gradient until at() or fill() is called for it. That differs from a
/// gradient of zeros: an optimiser skips a parameter without a gradient.
class Gradients {
 public:
  /// Allocates room for these names, so that at() needs no memory for them. Changes no gradient. Throws MEMORY.
  void reserve(const std::map<std::string, Shape>& shapes);
  /// Returns the gradient to accumulate into, zeroed if there was none; null if the name has no room because its gradient is not needed.
  float* at(const std::string& name);
  /// As at(), for callers that overwrite every value: the memory is not zeroed.
  float* fill(const std::string& name);
  /// Returns the gradient, or null if there is none.
  const float* find(const std::string& name) const;
  /// For a backward: returns room for these names, so that at() and fill() need no memory. Takes the room of names without a gradient from
  /// this object, and add() returns it; existing gradients stay. Throws MEMORY; nothing has changed then.
  Gradients staging(const std::map<std::string, Shape>& shapes);
  /// Adds all gradients in `more`, taking over its memory for names that had none. Allocates no memory.
  void add(Gradients& more) noexcept;
  /// Removes all gradients; their memory is reused.
  void zero();
  /// Removes all gradients and frees their memory.
  void clear() { entries_.clear(); }

  /// Returns the shapes of the existing gradients.
  std::map<std::string, Shape> shapes() const;

 private:
  struct Entry {
    Shape shape;
    std::vector<float> values;
    bool is_there = false;
  };
  std::map<std::string, Entry> entries_;
};

/// Holds the gradients of a module; empty until a forward saves data for backward() or an optimiser is created. Optimisers refer to a module
/// through it because it detects whether the module has moved. Moving new weights into a module discards its gradients, but optimisers stay
/// attached to it.
class GradientPlace {
 public:
  GradientPlace() = default;
  GradientPlace(GradientPlace&& other) noexcept;
  GradientPlace& operator=(GradientPlace&& other) noexcept;
  ~GradientPlace() { leave(); }

  struct Shared {
    Gradients gradients;
    std::shared_ptr<void> kept;            ///< data of the last forward, of the layer's own type; null once backward() used it or weights changed
    const GradientPlace* place = nullptr;  ///< of the module that owns the gradients; null once it is gone
    std::uint64_t changes = 0;             ///< how often the module's weights changed since share()

    /// Discards the data of the last forward, which belong to the old weights.
    void weights_changed() noexcept {
      kept.reset();
      ++changes;
    }
  };
  /// Returns the shared part, which is created on first use.
  const std::shared_ptr<Shared>& share();
  Gradients* get() { return shared_ != nullptr ? &shared_->gradients : nullptr; }
  const Gradients* get() const { return shared_ != nullptr ? &shared_->gradients : nullptr; }

 private:
  void leave() noexcept;

  std::shared_ptr<Shared> shared_;
};

/// Adds gradients by the names of the state, row-major and without gaps. Throws MISMATCH if no parameter has that name or shape, and MEMORY;
/// nothing has been added then.
void add_gradients(Gradients& gradients, const std::map<std::string, Shape>& parameters, const StateView& more);

}  // namespace attn::detail
