#pragma once

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attn/tensor/view.hpp"

namespace attn {

/// Parameters by torch's names, e.g. "out_proj.weight": where they lie, and where copies of them go, row-major.
using StateView = std::map<std::string, TensorView>;
using StateTarget = std::map<std::string, float*>;
/// The same as tensors; any name of a type will do.
template <class>
struct StateDictType;

namespace detail {

/// A state as the library takes it: where its tensors lie, or copies of those that have gaps.
struct StateInput {
  StateView views;

  template <class State>
  StateInput(const State& state, const char* op) {
    for (const auto& [name, tensor] : state) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(tensor)>, TensorView>)
        add(name, tensor);
      else
        add(name, tensor, op);
    }
  }
  StateInput(const StateInput&) = delete;  // views point to copies
  StateInput& operator=(const StateInput&) = delete;

 private:
  template <TensorLike E>
  void add(const std::string& name, const E& tensor, const char* op) {
    auto kept = std::make_shared<const Input<E>>(tensor, op, name.c_str());
    add(name, static_cast<const TensorView&>(*kept));
    kept_.push_back(std::move(kept));
  }
  /// Parameters are read as a whole, row-major without gaps.
  void add(const std::string& name, const TensorView& view);

  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace detail
}  // namespace attn
