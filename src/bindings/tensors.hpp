#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/state.hpp"

// Tensors as JavaScript and C++ hand them to each other: as numbers in the heap, since Embind's own objects cost more
// than a small attention does.
namespace attn::bindings {

/// Address in the heap; JavaScript sees a number.
using Address = std::uintptr_t;

/// Twelve 32-bit words, written by JavaScript for inputs, read by it for results.
struct Descriptor {
  std::uint32_t data = 0;
  std::int32_t rank = 0;
  std::int32_t dims[Shape::kMaxRank] = {};
  std::int32_t kind = 0;   ///< of a mask: the number of its MaskKind
  std::int32_t width = 0;  ///< bytes of an element; of a result 0 unless they are int8
};
static_assert(sizeof(Descriptor) == 48);

/// Names of an enum's values as JavaScript gets them: one string, comma between.
template <class Names>
std::string join(const Names& names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ",") + std::string(name);
  return all;
}

Shape shape_of(const Descriptor& descriptor);
TensorView view_of(const Descriptor& descriptor);

/// What a part of a result is. JavaScript has the same list in native.ts.
enum class Field : std::int32_t {
  output,
  weights,
  logits,
  attentions,     ///< of a layer
  hidden_states,  ///< that go into a layer, and last the output
  trace,          ///< of a layer, or of the one attention
  present_key,
  present_value,
  named,  ///< a tensor or shape by name
};

/// What a call returns. In memory: count, flags (bit 0: a trace was asked for), where the entries are, and at byte 16
/// the number, a double. JavaScript copies it all out and calls freeResult.
class Result {
 public:
  /// Room for a tensor of that shape; kept until the result is freed. layer is -1 where there is only one.
  float* add(Field field, const Shape& shape, std::int32_t layer = -1, std::int32_t name = 0);
  float* add(const Shape& shape) { return add(Field::output, shape); }
  /// By its name.
  float* add(const std::string& name, const Shape& shape);
  /// Of int8, and behind it under the same name what each row is multiplied by.
  StatePlace add_int8(const std::string& name, const Shape& shape);
  /// Shapes without data.
  void add(std::map<std::string, Shape> shapes);
  /// Texts without tensors.
  void add(std::vector<std::string> texts);
  void set_number(double number) { number_ = number; }
  /// There is a trace, maybe an empty one.
  void set_traced(bool traced) { flags_ = traced ? 1 : 0; }

  Address address() const { return reinterpret_cast<Address>(this); }
  static void free(Address address) { delete reinterpret_cast<Result*>(address); }

 private:
  /// 18 words; the last two are no business of JavaScript's.
  struct Entry {
    Field field = Field::output;
    std::int32_t layer = -1;
    std::uint32_t name = 0;       ///< number of a trace, address of a named one's UTF-8
    std::uint32_t name_size = 0;  ///< of that UTF-8
    Descriptor tensor;
    AlignedFloats data;
  };
  static_assert(sizeof(Entry) == 72);

  void add(const std::string& name, const Descriptor& tensor, AlignedFloats data = {});
  void update();

  std::int32_t count_ = 0, flags_ = 0;
  std::uint32_t entries_address_ = 0;
  double number_ = 0;
  std::vector<Entry> entries_;
  std::list<std::string> names_;  // whose addresses entries hold
  std::map<std::string, Shape> shapes_;
  std::vector<std::string> texts_;
};

/// A state dictionary on its way in.
class NamedTensors {
 public:
  /// The frame holds the name and the tensor.
  void add(Address frame);
  Address address() const { return reinterpret_cast<Address>(&state_); }

 private:
  StateView state_;
  std::vector<AlignedFloats> data_;  // what the state points to
};

}  // namespace attn::bindings
