#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn/ops/attention.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/tensor.hpp"

// Tensors as JavaScript and C++ hand them to each other: as numbers in the heap, since Embind's own objects cost more
// than a small attention does.
namespace attn::bindings {

/// Address in the heap; JavaScript sees a number.
using Address = std::uintptr_t;

/// Ten 32-bit words, written by JavaScript for inputs, read by it for results.
struct Descriptor {
  std::uint32_t data = 0;
  std::int32_t rank = 0;
  std::int32_t dims[Shape::kMaxRank] = {};
};
static_assert(sizeof(Descriptor) == 40);

/// Names of an enum's values as JavaScript gets them: one string, comma between.
template <class Names>
std::string join(const Names& names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ",") + std::string(name);
  return all;
}

Shape shape_at(Address descriptor);
TensorView view_at(Address descriptor);
Descriptor describe(const float* data, const Shape& shape);

/// What a call returns: in memory a count, then a slot and a descriptor for each tensor. Slot 0 is the output, 1 the
/// weights, 2 + i the trace of that name. JavaScript copies the tensors out and calls freeResult.
class Result {
 public:
  /// Room for a tensor of that shape; kept until the result is freed.
  float* add(std::int32_t slot, const Shape& shape);
  Address address() const { return reinterpret_cast<Address>(&words_); }
  static void free(Address address);

 private:
  static constexpr std::size_t kCapacity = 2 + kTraceNames.size();
  struct Entry {
    std::int32_t slot;
    Descriptor tensor;
  };
  struct Words {
    std::int32_t count = 0;
    std::array<Entry, kCapacity> entries;
  } words_;
  std::array<AlignedFloats, kCapacity> data_;
};

/// Named tensors on their way in (a state dictionary) or out (that, or a file's).
class NamedTensors {
 public:
  NamedTensors() = default;
  explicit NamedTensors(StateDict state);
  /// Shapes without data.
  explicit NamedTensors(const std::map<std::string, Shape>& shapes);

  /// `name` describes UTF-8 bytes.
  void add(Address name, Address tensor);
  std::size_t size() const { return entries_.size(); }
  /// UTF-8, size bytes from there.
  Address name_address(std::size_t index) const { return reinterpret_cast<Address>(entries_[index].name.data()); }
  std::size_t name_size(std::size_t index) const { return entries_[index].name.size(); }
  /// Valid until this object is deleted.
  Address tensor(std::size_t index) const { return reinterpret_cast<Address>(&entries_[index].descriptor); }
  const StateDict& state() const { return state_; }

 private:
  struct Entry {
    std::string name;
    Descriptor descriptor;
  };
  StateDict state_;
  std::vector<Entry> entries_;
};

}  // namespace attn::bindings
