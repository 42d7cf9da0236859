#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "attn/ops/attention.hpp"
#include "errors.hpp"
#include "tensors.hpp"

// The same statements write a function's signature, by which JavaScript checks and writes arguments, and read the
// arguments from the heap; work() runs the rest, unless a signature is written:
//
//   void softmax(Arguments& arguments, Work<> work) {
//     const TensorView x = arguments.tensor("x");
//     std::int64_t dim = -1;
//     arguments.option("dim", dim);
//     work([&](Result& result) { ... });
//   }
namespace attn::bindings {

/// The frame has a double per argument: the number or a descriptor's address; NaN if omitted.
class Arguments {
 public:
  explicit Arguments(Address frame) : leaf_(reinterpret_cast<const double*>(frame)) {}
  explicit Arguments(std::string& signature) : signature_(&signature) {}

  TensorView tensor(const char* name);
  std::optional<TensorView> optional_tensor(const char* name);
  std::span<const std::uint8_t> bytes(const char* name, const char* what);
  const StateView* state(const char* name);

  struct Ids {
    std::vector<std::int64_t> values;
    Shape shape;
  };
  Ids ids(const char* name);
  std::optional<Ids> optional_ids(const char* name);
  std::optional<std::int64_t> cache(const char* name) {
    const double leaf = take(name, "cache", false);
    return given(leaf) ? std::optional(static_cast<std::int64_t>(leaf)) : std::nullopt;
  }
  double limit(const char* name) { return take(name, "limit", true); }
  std::vector<std::int64_t> labels(const char* name) {
    const Descriptor* descriptor = take_descriptor(name, "labels", true);
    if (descriptor == nullptr) return {};
    const auto* const values = reinterpret_cast<const std::int32_t*>(descriptor->data);
    return {values, values + descriptor->dims[0]};
  }
  /// Null if omitted or a signature is written.
  template <class T>
  const T* object(const char* name, const char* kind, bool required) {
    const double leaf = take(name, kind, required);
    return given(leaf) ? reinterpret_cast<const T*>(static_cast<Address>(leaf)) : nullptr;
  }
  std::variant<std::int64_t, TensorView> vector_or_id(const char* name);

  void require(const char* name, std::int64_t& value) { assign(take(name, "int", true), value); }
  void require(const char* name, double& value) { assign(take(name, "number", true), value); }
  template <class Enum>
  void require(const char* name, Enum& value, std::span<const std::string_view> names) {
    choice(name, true, value, names);
  }

  /// Return whether the option is given.
  bool option(const char* name, bool& value) { return assign(take(name, "flag", false), value); }
  /// The values of the words begin at 2.
  template <class Enum>
  bool flag_or_word(const char* name, Enum& value, std::span<const std::string_view> words) {
    const double leaf = take(name, "flag", false, words);
    if (given(leaf)) value = static_cast<Enum>(static_cast<int>(leaf));
    return given(leaf);
  }
  bool option(const char* name, std::int64_t& value) { return assign(take(name, "int", false), value); }
  bool option(const char* name, float& value) { return assign(take(name, "number", false), value); }
  bool option(const char* name, double& value) { return assign(take(name, "number", false), value); }
  bool option(const char* name, std::uint64_t& value) { return assign(take(name, "seed", false), value); }
  bool option(const char* name, std::optional<Mask>& value);
  bool option(const char* name, Window& value);
  bool option(const char* name, std::array<double, 2>& value) {
    const double first = take(name, "pair", false);
    if (signature_ != nullptr) return false;
    const double second = *leaf_++;
    if (given(first)) value = {first, second};
    return given(first);
  }
  bool option(const char* name, std::span<const std::uint8_t>& value, const char* what);
  bool option(const char* name, std::vector<std::int64_t>& value);
  bool option(const char* name, Trace& value);
  bool option(const char* name, Trace& value, std::span<const std::string_view> names);
  template <class T>
  bool option(const char* name, std::optional<T>& value) {
    T given{};
    if (!option(name, given)) return false;
    value = std::move(given);
    return true;
  }
  template <class Enum>
  bool option(const char* name, Enum& value, std::span<const std::string_view> names) {
    return choice(name, false, value, names);
  }

  template <class Members>
  bool group(const char* name, Members members) {
    return group(name, false, members);
  }
  template <class Members>
  void require_group(const char* name, Members members) {
    group(name, true, members);
  }
  /// One or more objects: the length, then members() for each.
  template <class Members>
  void list(const char* name, Members members) {
    const double length = take(name, "list", false);
    if (signature_ != nullptr) {
      open_members();
      members();
      close_members();
    }
    for (double i = 0; i < length; ++i) members();
  }

 private:
  static bool given(double leaf) { return leaf == leaf; }
  template <class T>
  static bool assign(double leaf, T& value) {
    if (given(leaf)) value = static_cast<T>(leaf);
    return given(leaf);
  }

  double take(const char* name, const char* kind, bool required, std::span<const std::string_view> choices = {});
  const Descriptor* take_descriptor(const char* name, const char* kind, bool required, std::span<const std::string_view> choices = {});
  template <class Enum>
  bool choice(const char* name, bool required, Enum& value, std::span<const std::string_view> names) {
    return assign(take(name, "choice", required, names), value);
  }
  void describe(const char* name, const char* kind, bool required, std::span<const std::string_view> choices);

  template <class Members>
  bool group(const char* name, bool required, Members members) {
    const double leaf = take(name, "group", required);
    if (signature_ != nullptr) open_members();
    members();
    if (signature_ != nullptr) close_members();
    return given(leaf);
  }
  void open_members();
  void close_members();

  const double* leaf_ = nullptr;
  std::string* signature_ = nullptr;
};

template <class Self = void>
class Work {
 public:
  Work(Self* self, Result* result) : self_(self), result_(result) {}

  template <class F>
  void operator()(const F& stage) const {
    if (result_ == nullptr) return;
    if constexpr (std::is_void_v<Self>)
      stage(*result_);
    else
      stage(*self_, *result_);
  }

 private:
  Self* self_;
  Result* result_;
};

using Caller = void (*)(void* self, Arguments& arguments, Result* result);

template <class Self>
std::type_identity<Self> self_of(void (*)(Arguments&, Work<Self>));
template <auto Function>
using SelfOf = typename decltype(self_of(Function))::type;

template <auto Function>
void call(void* self, Arguments& arguments, Result* result) {
  using Self = SelfOf<Function>;
  Function(arguments, Work<Self>(static_cast<Self*>(self), result));
}

void add_signature(const char* owner, const char* name, const char* result, Caller call);
std::string signatures();

/// Out of line, for a single copy of the error handling.
Address run(Address frame, void* self, Caller call);

}  // namespace attn::bindings
