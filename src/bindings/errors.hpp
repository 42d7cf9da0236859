#pragma once

#include <exception>
#include <new>

#include "attn/tensor/error.hpp"

namespace attn::bindings {

/// Throws a JavaScript Error with code, message and detail. Option and argument names become JavaScript's (camelCase).
[[noreturn]] void throw_to_javascript(const Error& error);
[[noreturn]] void throw_out_of_memory();
[[noreturn]] void throw_internal(const char* what);

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
    throw_to_javascript(error);
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  } catch (const std::exception& error) {
    throw_internal(error.what());
  }
}

}  // namespace attn::bindings
