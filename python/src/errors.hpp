#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace attn::python {

void translate_errors();

/// Makes constructors call __init__, which attn/_calls.py replaces; nanobind's call C++ directly.
PyType_Slot* calling_init();

/// A code that C++ does not have.
[[noreturn]] void fail_dtype(std::string_view op, std::string_view argument, std::string_view expected, std::string_view got,
                             std::string_view help = "");

}  // namespace attn::python
