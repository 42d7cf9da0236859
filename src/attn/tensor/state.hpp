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

/// Parameters by torch's names, e.g. "out_proj.weight": where they lie, and where copies of them go, row-major.
using StateView = std::map<std::string, TensorView>;
/// Room for a parameter, or, of a weight (out,in) that is int8, for what it is kept as: weight[i][j] = scale[i] · data[i][j].
struct StatePlace {
  float* values = nullptr;
  std::int8_t* data = nullptr;
  float* scale = nullptr;

  StatePlace(float* all) : values(all) {}
  StatePlace(std::int8_t* numbers, float* scales) : data(numbers), scale(scales) {}

  /// The place of the rows from `row` on, of so many numbers each.
  StatePlace from(std::size_t row, std::size_t width) const {
    return data != nullptr ? StatePlace(data + row * width, scale + row) : StatePlace(values + row * width);
  }
};
using StateTarget = std::map<std::string, StatePlace>;
/// A weight (out,in) that is int8.
struct Int8Weight {
  std::vector<std::int8_t> data;  ///< row-major
  std::vector<float> scale;       ///< (out)
  Shape shape;
};
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
