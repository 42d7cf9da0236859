#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attn/tensor/view.hpp"

namespace attn {

/// Parameters to read, row-major, by PyTorch names such as "out_proj.weight".
using StateView = std::map<std::string, TensorView>;
/// Memory for a parameter: `values`, or for an int8 weight (out,in) `data` and `scale` with weight[i][j] = scale[i] ·
/// data[i][j].
struct StatePlace {
  float* values = nullptr;
  std::int8_t* data = nullptr;
  float* scale = nullptr;

  /// Refers to memory for all values as float32, or for the int8 numbers and their scales. Module::save_state() has an
  /// example.
  StatePlace(float* all) : values(all) {}
  StatePlace(std::int8_t* numbers, float* scales) : data(numbers), scale(scales) {}
};
/// Parameters to write, row-major, by PyTorch names.
using StateTarget = std::map<std::string, StatePlace>;
/// An int8 weight (out,in).
struct Int8Weight {
  std::vector<std::int8_t> data;  ///< row-major
  std::vector<float> scale;       ///< (out)
  Shape shape;
};
/// Type of state dictionaries, defined in tensor.hpp; T only delays the lookup until it is defined.
template <class>
struct StateDictType;

namespace detail {

/// A state as the library reads it: views of its tensors, or of copies if they have gaps.
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
  StateInput(const StateInput&) = delete;  // views may point into kept_
  StateInput& operator=(const StateInput&) = delete;

 private:
  template <TensorLike E>
  void add(const std::string& name, const E& tensor, const char* op) {
    auto kept = std::make_shared<const Input<E>>(tensor, op, name.c_str());
    add(name, static_cast<const TensorView&>(*kept));
    kept_.push_back(std::move(kept));
  }
  /// Adds a view, or a copy if it has gaps: parameters are read as a whole.
  void add(const std::string& name, const TensorView& view);

  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace detail
}  // namespace attn
