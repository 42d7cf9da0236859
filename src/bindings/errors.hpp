#pragma once

#include "attn/tensor/error.hpp"

namespace attn::bindings {

/// Does not allocate on the heap.
void create_error();
[[noreturn]] void throw_created();

/// Throws JavaScript errors: C++ exceptions lose their message, and Emscripten's helpers for it cost 70 KB. If body can
/// throw, pass only numbers: Embind then leaks strings and value_objects.
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
