#pragma once

#include "attn/tensor/error.hpp"

namespace attn::bindings {

/// Makes a JavaScript Error with code, message and detail of the C++ exception that is being handled. Nothing of it allocates in the heap.
void create_error();
/// Throws what was made.
[[noreturn]] void throw_created();

/// Functions that can throw take numbers only: Embind frees the C++ side of a string or a value_object after a call
/// that returns, not after one that throws.
///
/// Calls body; what it throws reaches JavaScript as an Error. C++ exceptions themselves would arrive there without
/// their message: emscripten's helpers that could read it cost 70 KB.
template <class Body>
auto guard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    create_error();
  }
  throw_created();  // not inside a handler, where the C++ exception would stay allocated
}

}  // namespace attn::bindings
