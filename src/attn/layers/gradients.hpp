#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/state.hpp"

namespace attn::detail {

/// Gradients by the names of the state, row-major. A missing gradient differs from zeros: optimisers skip the parameter.
class Gradients {
 public:
  /// Allocates, so that at() needs no memory for these names.
  void reserve(const std::map<std::string, Shape>& shapes);
  /// To accumulate into; zeroed if new. Null if the name has no room: its gradient is not needed.
  float* at(const std::string& name);
  /// As at(), but not zeroed, for callers that overwrite every value.
  float* fill(const std::string& name);
  const float* find(const std::string& name) const;
  /// Returns room for a backward, so that at() and fill() need no memory; add() returns it. Takes it from names without a gradient, except in a
  /// dry run. If it throws MEMORY, nothing has changed.
  Gradients staging(const std::map<std::string, Shape>& shapes);
  /// Takes over memory for new names and allocates none.
  void add(Gradients& more) noexcept;
  /// Removes all gradients; their memory is reused.
  void zero();
  void clear() { entries_.clear(); }

  /// Of gradients, or of all names with room for one.
  std::map<std::string, Shape> shapes(bool with_room = false) const;

 private:
  struct Entry {
    Shape shape;
    AlignedFloats values;
    bool is_there = false;
  };
  std::map<std::string, Entry> entries_;
};

/// Empty until a forward saves data for backward() or an optimiser is created. Optimisers refer to a module through it, because it detects moves.
/// Moving new weights into a module discards its gradients, but optimisers stay attached.
class GradientPlace {
 public:
  GradientPlace() = default;
  GradientPlace(GradientPlace&& other) noexcept;
  GradientPlace& operator=(GradientPlace&& other) noexcept;
  ~GradientPlace() { leave(); }

  struct Shared {
    Gradients gradients;
    std::shared_ptr<void> kept;            ///< data of the last forward; null once backward() used it or weights changed
    const GradientPlace* place = nullptr;  ///< of the owning module; null once it is gone
    std::uint64_t changes = 0;             ///< of weights since share()

    void weights_changed() noexcept {
      kept.reset();
      ++changes;
    }
  };
  const std::shared_ptr<Shared>& share();
  Gradients* get() { return shared_ != nullptr ? &shared_->gradients : nullptr; }
  const Gradients* get() const { return shared_ != nullptr ? &shared_->gradients : nullptr; }

 private:
  void leave() noexcept;

  std::shared_ptr<Shared> shared_;
};

/// `more` is row-major without gaps. Throws MISMATCH for an unknown name or shape, and MEMORY; nothing has been added then.
void add_gradients(Gradients& gradients, const std::map<std::string, Shape>& parameters, const StateView& more);

}  // namespace attn::detail
