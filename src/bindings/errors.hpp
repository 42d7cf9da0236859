#pragma once

#include <exception>
#include <new>

#include "attn/tensor/error.hpp"

namespace attn::bindings {

/// Make a JavaScript Error with code, message and detail. None of the three allocates in the heap.
void create_error(const Error& error);
void create_out_of_memory();
void create_internal(const char* what);
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
  } catch (const Error& error) {
    create_error(error);
  } catch (const std::bad_alloc&) {
    create_out_of_memory();
  } catch (const std::exception& error) {
    create_internal(error.what());
  }
  throw_created();  // not inside a handler, where the C++ exception would stay allocated
}

}  // namespace attn::bindings
