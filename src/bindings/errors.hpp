#pragma once

#include "attn/tensor/error.hpp"

namespace attn::bindings {

/// Creates a JavaScript Error of the current exception without heap allocation.
void create_error();
[[noreturn]] void throw_created();

/// Rethrows exceptions as JavaScript errors, because C++ exceptions lose their message and Emscripten's helpers for it
/// cost 70 KB. If body can throw, pass only numbers: Embind leaks strings and value_objects then.
template <class Body>
auto guard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    create_error();
  }
  throw_created();  // here the C++ exception is already freed
}

}  // namespace attn::bindings
