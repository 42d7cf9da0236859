#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn/core.hpp"
#include "attn/tensor/large_pages.hpp"

namespace attn::python {

namespace nb = nanobind;

inline std::string name_of_type(nb::handle value) { return nb::cast<std::string>(value.type().attr("__name__")); }

/// Row-major, filled without the GIL. Copies share memory.
template <class T>
class Array {
 public:
  using value_type = T;

  Array() = default;
  explicit Array(const Shape& shape) : shape_(shape), size_(static_cast<std::size_t>(checked_size(shape, "attn", "a result"))), data_(new T[size_]) {
    detail::prefer_large_pages(data_.get(), size_ * sizeof(T));
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<const std::int64_t> shape() const { return {shape_.begin(), shape_.end()}; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  nb::object to_numpy() const {
    const nb::capsule owner(new std::shared_ptr<T[]>(data_), [](void* data) noexcept { delete static_cast<std::shared_ptr<T[]>*>(data); });
    std::size_t dims[Shape::kMaxRank] = {};
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis) dims[axis] = static_cast<std::size_t>(shape_[axis]);
    return nb::cast(nb::ndarray<nb::numpy, T>(data_.get(), shape_.rank(), dims, owner));
  }

 private:
  Shape shape_;
  std::size_t size_ = 0;
  std::shared_ptr<T[]> data_;
};

template <std::size_t N>
struct TypeName {
  char text[N];
  consteval TypeName(const char (&name)[N]) { std::copy_n(name, N, text); }
};
template <TypeName kName>
struct Typed : nb::object {
  static constexpr auto Name = nb::detail::const_name(kName.text);
  static bool check_(nb::handle) { return true; }

  Typed(nb::object given) : nb::object(std::move(given)) {}
  Typed(nb::handle given, nb::detail::borrow_t tag) : nb::object(given, tag) {}
  Typed(nb::handle given, nb::detail::steal_t tag) : nb::object(given, tag) {}
};
using ArrayLike = Typed<"numpy.typing.ArrayLike">;
using MaybeArrayLike = ArrayLike;
using FloatArray = Typed<"numpy.typing.NDArray[numpy.float32]">;
using StateDict = Typed<"dict[str, numpy.typing.NDArray[numpy.float32]]">;
using Path = Typed<"str | bytes | os.PathLike[str] | os.PathLike[bytes]">;
/// Expands a leading ~. Throws ARGUMENT.
std::string path_of(const Path& path, const char* op, const char* argument = "path");
using StateLike = Typed<"collections.abc.Mapping[str, numpy.typing.ArrayLike]">;

/// numpy.asarray(). Throws ARGUMENT for masked entries, DTYPE with numpy's reason for what numpy cannot read.
nb::object as_array(nb::handle given, const char* op, const char* argument);

/// A view of float32 in CPU memory (numpy, DLPack), otherwise a copy. Throws DTYPE, ARGUMENT.
class Floats : public TensorView {
 public:
  Floats(nb::handle given, const char* op, const char* argument);

 private:
  nb::ndarray<const float, nb::device::cpu> array_;
};

Array<std::int32_t> ids_of(nb::handle given, const char* op, const char* argument);
Array<std::uint8_t> flags_of(nb::handle given, const char* op, const char* argument);

class State {
 public:
  State(nb::handle mapping, const char* op);
  const StateView& views() const { return views_; }

 private:
  std::vector<std::unique_ptr<const Floats>> arrays_;
  StateView views_;
};

inline nb::tuple tuple_of(const Shape& shape) {
  nb::list dims;
  for (const std::int64_t dim : shape) dims.append(dim);
  return nb::tuple(dims);
}

/// Every 4096 elements. Throws KeyboardInterrupt.
inline void check_signals(std::size_t index) {
  if (index % 4096 == 4095 && PyErr_CheckSignals() != 0) nb::raise_python_error();
}

inline nb::object to_python(const std::string& name) { return nb::str(name.data(), name.size()); }
inline nb::object to_python(std::int64_t number) { return nb::int_(number); }
inline nb::object to_python(TraceName name) { return to_python(std::string(to_string(name))); }
template <class T>
nb::object to_python(const Array<T>& array) {
  return array.to_numpy();
}
template <class T>
nb::object to_python(const std::optional<T>& value) {
  return value ? nb::object(to_python(*value)) : nb::none();
}
template <class T>
nb::list to_python(const std::vector<T>& arrays) {
  nb::list list;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    check_signals(i);
    list.append(to_python(arrays[i]));
  }
  return list;
}
template <class Key, class T>
nb::dict to_python(const std::map<Key, T>& arrays) {
  nb::dict dict;
  for (const auto& [key, each] : arrays) dict[to_python(key)] = to_python(each);
  return dict;
}

template <class... Members>
nb::object make_result(const char* name, Members&&... members) {
  return nb::module_::import_("attn._results").attr(name)(std::forward<Members>(members)...);
}

}  // namespace attn::python

namespace attn {

template <std::size_t N, class T>
struct TensorType {
  using type = python::Array<T>;
};
template <class>
struct StateDictType {
  using type = std::map<std::string, python::Array<float>>;
};

namespace detail {

template <std::size_t N, class T>
TensorOf<N, T> empty(const Shape& shape) {
  return python::Array<T>(shape);
}

}  // namespace detail
}  // namespace attn
