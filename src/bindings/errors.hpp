#pragma once

#include "attn/tensor/error.hpp"

namespace attn::bindings {

/// Creates a JavaScript Error with code, message and detail of the current C++ exception, without allocating on the
/// heap.
void create_error();
[[noreturn]] void throw_created();

/// Calls body and throws its exceptions as JavaScript errors: a C++ exception would arrive without its message, and
/// Emscripten's helpers that read it cost 70 KB. Functions that can throw take only numbers: Embind leaks strings and
/// value_objects if a call throws.
template <class Body>
auto guard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    create_error();
  }
  throw_created();  // outside the handler, so that the C++ exception is freed first
}

}  // namespace attn::bindings
