#include "tensors.hpp"

#include <emscripten/bind.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "errors.hpp"
#include "signature.hpp"

namespace attn::bindings {
namespace {

Descriptor describe(const float* data, const Shape& shape) {
  Descriptor descriptor{.data = static_cast<std::uint32_t>(reinterpret_cast<Address>(data)), .rank = static_cast<std::int32_t>(shape.rank())};
  std::transform(shape.begin(), shape.end(), descriptor.dims, [](std::int64_t dim) { return static_cast<std::int32_t>(dim); });
  return descriptor;
}

}  // namespace

Shape shape_of(const Descriptor& descriptor) {
  Shape shape;
  for (std::int32_t axis = 0; axis < descriptor.rank; ++axis) shape.push_back(descriptor.dims[axis]);
  return shape;
}

TensorView view_of(const Descriptor& descriptor) { return {reinterpret_cast<const float*>(descriptor.data), shape_of(descriptor)}; }

float* Result::add(Field field, const Shape& shape, std::int32_t layer, std::int32_t name) {
  AlignedFloats data(static_cast<std::size_t>(checked_size(shape, "result", "a tensor")));
  float* const start = data.data();
  if (entries_.empty()) entries_.reserve(4);
  entries_.push_back({field, layer, static_cast<std::uint32_t>(name), 0, describe(start, shape), std::move(data)});
  update();
  return start;
}

float* Result::add(std::string_view name, const Shape& shape) {
  AlignedFloats data(static_cast<std::size_t>(checked_size(shape, "result", "a tensor")));
  float* const start = data.data();
  add(names_.emplace_back(name), describe(start, shape), std::move(data));
  return start;
}

StatePlace Result::add_int8(std::string_view name, const Shape& shape) {
  AlignedFloats data((static_cast<std::size_t>(checked_size(shape, "result", "a tensor")) + 3) / 4);
  auto* const start = reinterpret_cast<std::int8_t*>(data.data());
  Descriptor tensor = describe(data.data(), shape);
  tensor.width = 1;
  add(names_.emplace_back(name), tensor, std::move(data));
  return {start, add(name, Shape{shape[0]})};
}

void Result::add(std::map<std::string, Shape> shapes) {
  shapes_ = std::move(shapes);
  for (const auto& [name, shape] : shapes_) add(name, describe(nullptr, shape));
}

void Result::add(std::vector<std::string> texts) {
  texts_ = std::move(texts);
  for (const std::string& each : texts_) add(each, Descriptor{});
}

void Result::add(const std::string& name, const Descriptor& tensor, AlignedFloats data) {
  entries_.push_back({Field::named, -1, static_cast<std::uint32_t>(reinterpret_cast<Address>(name.data())), static_cast<std::uint32_t>(name.size()),
                      tensor, std::move(data)});
  update();
}

void Result::update() {
  count_ = static_cast<std::int32_t>(entries_.size());
  entries_address_ = static_cast<std::uint32_t>(reinterpret_cast<Address>(entries_.data()));
}

void NamedTensors::add(Address frame) {
  Arguments arguments(frame);
  const std::span<const std::uint8_t> name = arguments.bytes("name", "a name");
  state_.insert_or_assign(std::string(name.begin(), name.end()), arguments.tensor("tensor"));
}

}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_tensors) {
  using namespace attn::bindings;
  emscripten::function("freeResult", &Result::free);
  emscripten::class_<NamedTensors>("NamedTensors")
      .constructor(+[] { return guard([] { return std::make_unique<NamedTensors>(); }); })
      .function(
          "add", +[](NamedTensors& self, Address frame) { guard([&] { self.add(frame); }); })
      .function("address", &NamedTensors::address);
}
