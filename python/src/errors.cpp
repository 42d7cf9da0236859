#include "errors.hpp"

#include <nanobind/nanobind.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "attn/tensor/error.hpp"

namespace attn::python {
namespace {

namespace nb = nanobind;

/// Names of files and tensors may not be UTF-8.
nb::object to_python(std::string_view text) { return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")); }
nb::object to_python(double number) { return nb::float_(number); }
nb::object to_python(const std::vector<std::string>& items) {
  nb::list list;
  for (const std::string& item : items) list.append(to_python(item));
  return list;
}

void raise(std::string_view code, std::string_view message, const ErrorDetail& detail) {
  nb::dict facts;
  for (const auto& [name, fact] : detail) facts[to_python(name)] = std::visit([](const auto& value) { return to_python(value); }, fact);
  const nb::object error = nb::module_::import_("attn._errors").attr("make_error")(to_python(code), to_python(message), facts);
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

PyObject* construct(PyObject* type, PyObject* const* arguments, std::size_t flags, PyObject* names) {
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flags));
  const nb::object positional = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count))), named = nb::steal(PyDict_New());
  if (!positional.is_valid() || !named.is_valid()) return nullptr;
  for (std::size_t i = 0; i < count; ++i)
    if (PyTuple_SetItem(positional.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(arguments[i])) != 0) return nullptr;
  for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_Size(names); ++i)
    if (PyDict_SetItem(named.ptr(), PyTuple_GetItem(names, i), arguments[count + static_cast<std::size_t>(i)]) != 0) return nullptr;
  const auto call = reinterpret_cast<ternaryfunc>(PyType_GetSlot(&PyType_Type, Py_tp_call));
  return call(type, positional.ptr(), named.ptr());
}

}  // namespace

PyType_Slot* calling_init() {
  constexpr int kVectorcall = 82;  // Py_tp_vectorcall of Python 3.14; nanobind accepts it for older versions
  static PyType_Slot slots[]{{kVectorcall, reinterpret_cast<void*>(&construct)}, {0, nullptr}};
  return slots;
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      // May raise KeyboardInterrupt.
      try {
        raise(to_string(error.code()), error.what(), error.detail());
      } catch (nb::python_error& instead) {
        instead.restore();
      }
    } catch (const std::length_error&) {
      PyErr_NoMemory();  // a vector of too many elements
    }
  });
}

void fail_dtype(std::string_view op, std::string_view argument, std::string_view expected, std::string_view got, std::string_view help) {
  ErrorDetail detail = detail::error_detail(op, argument);
  detail.emplace("expected", std::string(expected));
  detail.emplace("got", std::string(got));
  std::string message = detail::text({op, ": ", argument, " is ", got, ", expected ", expected});
  if (!help.empty()) {
    detail.emplace("help", std::string(help));
    message += detail::text({". ", help, "."});
  }
  raise("DTYPE", message, detail);
  nb::raise_python_error();
}

}  // namespace attn::python
