#pragma once

#include <string_view>

// Errors of the library as exceptions, whose classes are Python's own (attn/_errors.py).
namespace attn::python {

void translate_errors();

/// Throws DTYPE: memory holds another kind of numbers, which only an interface without types can be given.
[[noreturn]] void fail_dtype(std::string_view op, std::string_view argument, std::string_view expected, std::string_view got);

}  // namespace attn::python
