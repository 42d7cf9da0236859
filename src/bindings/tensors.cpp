#include "tensors.hpp"

#include <emscripten/bind.h>

#include <algorithm>

#include "errors.hpp"

namespace attn::bindings {

Shape shape_at(Address address) {
  const auto* descriptor = reinterpret_cast<const Descriptor*>(address);
  Shape shape;
  for (std::int32_t axis = 0; axis < descriptor->rank; ++axis) shape.push_back(descriptor->dims[axis]);
  return shape;
}

TensorView view_at(Address address) {
  return {reinterpret_cast<const float*>(reinterpret_cast<const Descriptor*>(address)->data), shape_at(address)};
}

Descriptor describe(const float* data, const Shape& shape) {
  Descriptor descriptor{.data = static_cast<std::uint32_t>(reinterpret_cast<Address>(data)), .rank = static_cast<std::int32_t>(shape.rank())};
  std::transform(shape.begin(), shape.end(), descriptor.dims, [](std::int64_t dim) { return static_cast<std::int32_t>(dim); });
  return descriptor;
}

float* Result::add(std::int32_t slot, const Shape& shape) {
  const auto index = static_cast<std::size_t>(words_.count);
  data_[index] = AlignedFloats(static_cast<std::size_t>(checked_size(shape, "result", "a tensor")));
  words_.entries[index] = {slot, describe(data_[index].data(), shape)};
  ++words_.count;
  return data_[index].data();
}

void Result::free(Address address) {
  static_assert(std::is_standard_layout_v<Words>);
  delete reinterpret_cast<Result*>(address);  // words_ is the first member
}

NamedTensors::NamedTensors(StateDict state) : state_(std::move(state)) {
  for (const auto& [name, tensor] : state_) entries_.push_back({name, describe(tensor.data(), to_shape(tensor.shape()))});
}

NamedTensors::NamedTensors(const std::map<std::string, Shape>& shapes) {
  for (const auto& [name, shape] : shapes) entries_.push_back({name, describe(nullptr, shape)});
}

void NamedTensors::add(Address name_address, Address tensor_address) {
  const TensorView name_view = view_at(name_address), view = view_at(tensor_address);
  const std::string name(reinterpret_cast<const char*>(name_view.data), static_cast<std::size_t>(name_view.shape[0]));
  AnyTensor tensor = empty_any(view.shape);
  std::copy_n(view.data, tensor.size(), tensor.data());
  entries_.push_back({name, describe(tensor.data(), view.shape)});
  state_.insert_or_assign(name, std::move(tensor));
}

}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_tensors) {
  using namespace attn::bindings;
  emscripten::function("freeResult", &Result::free);
  emscripten::class_<NamedTensors>("NamedTensors")
      .constructor<>()
      .function(
          "add", +[](NamedTensors& self, Address name, Address tensor) { guard([&] { self.add(name, tensor); }); })
      .function("size", &NamedTensors::size)
      .function("nameAddress", &NamedTensors::name_address)
      .function("nameSize", &NamedTensors::name_size)
      .function("tensor", &NamedTensors::tensor);
}
