#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/aligned.hpp"
#include "attn/tensor/state.hpp"

// Numbers in the heap: Embind's objects cost more time than a small attention.
namespace attn::bindings {

using Address = std::uintptr_t;

struct Descriptor {
  std::uint32_t data = 0;
  std::int32_t rank = 0;
  std::int32_t dims[Shape::kMaxRank] = {};
  std::int32_t kind = 0;   ///< MaskKind
  std::int32_t width = 0;  ///< bytes per element; 0 in results unless int8
};
static_assert(sizeof(Descriptor) == 48);

template <class Names>
std::string join(const Names& names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ",") + std::string(name);
  return all;
}

Shape shape_of(const Descriptor& descriptor);
TensorView view_of(const Descriptor& descriptor);

/// native.ts has the same list.
enum class Field : std::int32_t {
  output,
  weights,
  logits,
  attentions,
  hidden_states,
  trace,
  present_key,
  present_value,
  named,
};

/// Count, flags (bit 0: traced), address of the entries; at byte 16 a double. JavaScript copies everything and calls
/// freeResult.
class Result {
 public:
  /// Lives as long as the result. `layer` is -1 if there is only one.
  float* add(Field field, const Shape& shape, std::int32_t layer = -1, std::int32_t name = 0);
  float* add(const Shape& shape) { return add(Field::output, shape); }
  float* add(std::string_view name, const Shape& shape);
  StatePlace add_int8(std::string_view name, const Shape& shape);
  void add(std::map<std::string, Shape> shapes);
  void add(std::vector<std::string> texts);
  void set_number(double number) { number_ = number; }
  void set_traced(bool traced) { flags_ = traced ? 1 : 0; }

  Address address() const { return reinterpret_cast<Address>(this); }
  static void free(Address address) { delete reinterpret_cast<Result*>(address); }

 private:
  /// JavaScript reads the first 16 of 18 words.
  struct Entry {
    Field field = Field::output;
    std::int32_t layer = -1;
    std::uint32_t name = 0;  ///< trace number, or address of a UTF-8 name
    std::uint32_t name_size = 0;
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
  std::list<std::string> names_;  // a list, because entries hold addresses
  std::map<std::string, Shape> shapes_;
  std::vector<std::string> texts_;
};

class NamedTensors {
 public:
  /// The frame must outlive this object.
  void add(Address frame);
  Address address() const { return reinterpret_cast<Address>(&state_); }

 private:
  StateView state_;
};

}  // namespace attn::bindings
