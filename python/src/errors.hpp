#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace attn::python {

void translate_errors();

/// Slots of classes whose constructor calls __init__, as Python's own classes do: attn/_calls.py replaces it. nanobind's constructors call the C++
/// function directly.
PyType_Slot* calling_init();

/// Raises DTYPE, a code that C++ does not have.
[[noreturn]] void fail_dtype(std::string_view op, std::string_view argument, std::string_view expected, std::string_view got);

}  // namespace attn::python
