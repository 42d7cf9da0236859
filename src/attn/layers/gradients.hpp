#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "attn/tensor/state.hpp"

// Where the gradients of a module lie. Internal.
namespace attn::detail {

/// Whether layers have a place for gradients: natively, and in WebAssembly that is compiled with ATTN_TRAINING. What a page loads to run a
/// model is compiled without and has not a byte of it.
#if !defined(__wasm__) || defined(ATTN_TRAINING)
inline constexpr bool kHasGradients = true;
#else
inline constexpr bool kHasGradients = false;
#endif

/// Gradients by the names of the state, row-major. A parameter has none until at() was asked for it, which is not the same as zeros: an
/// optimiser leaves such a parameter alone.
class Gradients {
 public:
  /// Room for them, after which at() of these names needs no memory. No gradient changes. Throws MEMORY.
  void reserve(const std::map<std::string, Shape>& shapes);
  /// Where what comes is added up, zeros where there was none. Null for a name that has no room: nobody wants its gradient.
  float* at(const std::string& name);
  /// The same for who writes all of it.
  float* fill(const std::string& name);
  /// Null where there is none.
  const float* find(const std::string& name) const;
  /// For a backward: room for them, after which at() and fill() need no memory. Where there is no gradient it is the room that is here, which
  /// add() brings back; what is there stays. Throws MEMORY; nothing is changed then.
  Gradients room(const std::map<std::string, Shape>& shapes);
  /// Adds all of `more`, whose memory it takes where there was none. Needs no memory of its own.
  void add(Gradients& more) noexcept;
  /// There is none any more; the room stays for the next ones.
  void zero();
  /// Nor the room.
  void clear() { entries_.clear(); }

  /// Shapes of those that are there.
  std::map<std::string, Shape> shapes() const;

 private:
  struct Entry {
    Shape shape;
    std::vector<float> values;
    bool is_there = false;
  };
  std::map<std::string, Entry> entries_;
};

/// What a module has of gradients: nothing until a forward keeps what backward() needs or an optimiser comes. Optimisers refer to a module through
/// it, since it knows whether the module is where it was. Where new weights are moved into a module its gradients go and who refers to it stays.
class GradientPlace {
 public:
  GradientPlace() = default;
  GradientPlace(GradientPlace&& other) noexcept;
  GradientPlace& operator=(GradientPlace&& other) noexcept;
  ~GradientPlace() { leave(); }

  struct Shared {
    Gradients gradients;
    std::shared_ptr<void> kept;            ///< by the last forward for backward(), of the layer's own type; null once used or when weights changed
    const GradientPlace* place = nullptr;  ///< of the module that they are of, null when that has gone
  };
  /// Makes it where it is not there yet.
  const std::shared_ptr<Shared>& share();
  Gradients* get() { return shared_ != nullptr ? &shared_->gradients : nullptr; }
  const Gradients* get() const { return shared_ != nullptr ? &shared_->gradients : nullptr; }

 private:
  void leave() noexcept;

  std::shared_ptr<Shared> shared_;
};

/// Where modules have no place for them: what would use it is not compiled.
struct NoGradientPlace {
  static Gradients* get() { return nullptr; }  // the others are not defined
  static const std::shared_ptr<GradientPlace::Shared>& share();
};
/// The member of a module.
using ModuleGradients = std::conditional_t<kHasGradients, GradientPlace, NoGradientPlace>;

/// Adds gradients, by the names of the state, row-major and without gaps. Throws MISMATCH where a name or a shape is not among those of the
/// parameters, MEMORY; nothing is added then.
void add_gradients(Gradients& gradients, const std::map<std::string, Shape>& parameters, const StateView& more);

}  // namespace attn::detail
