#pragma once

#include <string_view>

namespace attn::python {

void translate_errors();

/// Raises DTYPE, a code that C++ does not have.
[[noreturn]] void fail_dtype(std::string_view op, std::string_view argument, std::string_view expected, std::string_view got);

}  // namespace attn::python
