#include "array.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "errors.hpp"

namespace attn::python {
namespace {

nb::object numpy(const char* name) { return nb::module_::import_("numpy").attr(name); }

/// numpy would use the numbers behind the mask.
void check_unmasked(nb::handle given, const char* op, const char* argument) {
  if (PyList_Check(given.ptr()) || given.type().is(numpy("ndarray")) || !nb::isinstance(given, numpy("ma").attr("MaskedArray"))) return;
  if (nb::cast<bool>(numpy("ma").attr("is_masked")(given)))
    detail::fail(ErrorCode::argument, op, argument, {"an array without masked entries"}, {"a masked array"},
                 "Replace masked entries first, for example with filled(0)");
}

/// numpy's same_kind: float64 fits float32, complex does not.
bool fits(const nb::object& array, const char* kind) { return nb::cast<bool>(numpy("can_cast")(array.attr("dtype"), kind, "same_kind")); }

nb::object copied_as(const nb::object& array, const char* kind) { return numpy("array")(array, nb::arg("dtype") = kind, nb::arg("order") = "C"); }

[[noreturn]] void refuse(const nb::object& array, const char* op, const char* argument, const char* expected) {
  const nb::object dtype = array.attr("dtype");
  const std::string kind = nb::cast<std::string>(dtype.attr("kind"));
  fail_dtype(op, argument, expected, kind == "U" || kind == "S" ? "text" : nb::cast<std::string>(dtype.attr("name")));
}

template <class Array>
Strides strides_of(const Array& array) {
  Strides strides{};
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) strides[axis] = array.stride(axis);
  return strides;
}

template <class Array>
Shape shape_of(const Array& array, const char* op, const char* argument) {
  if (array.ndim() > Shape::kMaxRank) detail::fail(ErrorCode::shape, op, argument, {"a rank of at most 8"}, {"rank ", array.ndim()});
  return to_shape(std::span(array.shape_ptr(), array.ndim()));
}

}  // namespace

nb::object as_array(nb::handle given, const char* op, const char* argument) {
  check_unmasked(given, op, argument);
  try {
    return numpy("asarray")(given);
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_ValueError) && (PyList_Check(given.ptr()) || PyTuple_Check(given.ptr())))
      detail::fail(ErrorCode::shape, op, argument, {"rows of equal lengths"}, {"a list with rows of different lengths"});
    if (!error.matches(PyExc_TypeError) || !nb::hasattr(given, "dtype")) throw;
    // numpy's reason names the remedy, such as Tensor.cpu().
    const auto reason = nb::cast<std::string>(nb::str(error.value()));
    const nb::object dtype = given.attr("dtype");  // nb::str() of an attribute would not convert
    fail_dtype(op, argument, "an array that numpy can read (" + reason + ")", nb::cast<std::string>(nb::str(dtype)));
  }
}

std::string path_of(const Path& path, const char* op, const char* argument) {
  const auto refuse = [&](std::string_view got) { detail::fail(ErrorCode::argument, op, argument, {"a str, bytes or os.PathLike"}, {got}); };
  if (!PyUnicode_Check(path.ptr()) && !PyBytes_Check(path.ptr()) && !nb::hasattr(path, "__fspath__")) refuse(name_of_type(path));
  const nb::object expanded = nb::module_::import_("os").attr("path").attr("expanduser")(path);
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(expanded.ptr(), &encoded) == 0) {
    PyErr_Clear();
    refuse("a path with a null byte or lone surrogates");
  }
  const nb::object bytes = nb::steal(encoded);
  return {PyBytes_AS_STRING(encoded), static_cast<std::size_t>(PyBytes_GET_SIZE(encoded))};
}

Floats::Floats(nb::handle given, const char* op, const char* argument) {
  const auto point = [&] { TensorView::operator=({array_.data(), shape_of(array_, op, argument), strides_of(array_)}); };
  if (nb::try_cast(given, array_, false)) {
    check_unmasked(given, op, argument);
    point();
    if (rows_without_gaps(shape, strides)) return;
  }
  const nb::object array = as_array(given, op, argument);
  if (!fits(array, "float32")) refuse(array, op, argument, "real numbers");
  array_ = nb::cast<nb::ndarray<const float, nb::device::cpu>>(copied_as(array, "float32"));
  point();
}

Array<std::int32_t> ids_of(nb::handle given, const char* op, const char* argument) {
  const nb::object array = as_array(given, op, argument);
  // An empty list is float64.
  if (!fits(array, "int64") && nb::cast<std::size_t>(array.attr("size")) > 0) refuse(array, op, argument, "whole numbers");
  // uint64 would wrap.
  if (nb::cast<std::string>(array.attr("dtype").attr("kind")) == "u" && nb::cast<std::size_t>(array.attr("size")) > 0)
    if (const auto most = nb::cast<std::uint64_t>(array.attr("max")()); most > 0x7fffffffU)
      detail::fail(ErrorCode::out_of_range, op, argument, {"numbers of 32 bits"}, {std::to_string(most)});
  const auto numbers = nb::cast<nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>>(copied_as(array, "int64"));
  Array<std::int32_t> ids(shape_of(numbers, op, argument));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = numbers.data()[i];
    if (id != static_cast<std::int32_t>(id)) detail::fail(ErrorCode::out_of_range, op, argument, {"numbers of 32 bits"}, {id});
    ids.data()[i] = static_cast<std::int32_t>(id);
  }
  return ids;
}

Array<std::uint8_t> flags_of(nb::handle given, const char* op, const char* argument) {
  const nb::object array = as_array(given, op, argument);
  if (!fits(array, "float64")) refuse(array, op, argument, "real numbers");
  const auto set = nb::cast<nb::ndarray<const bool, nb::c_contig, nb::device::cpu>>(copied_as(array, "bool"));
  Array<std::uint8_t> flags(shape_of(set, op, argument));
  std::copy_n(set.data(), flags.size(), flags.data());
  return flags;
}

State::State(nb::handle mapping, const char* op) {
  const auto state = nb::cast<nb::dict>(nb::module_::import_("builtins").attr("dict")(mapping));
  for (const auto [key, array] : state) {
    std::string name;
    if (!nb::try_cast(key, name)) detail::fail(ErrorCode::argument, op, "a name", {"a str"}, {name_of_type(key)});
    arrays_.push_back(std::make_unique<const Floats>(array, op, name.c_str()));
    views_.emplace(name, *arrays_.back());
  }
}

}  // namespace attn::python
