#include "errors.hpp"

#include <emscripten/em_js.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// JavaScript assembles errors from existing bytes: memory may be exhausted, which Embind's strings do not check.

// clang-format off
EM_JS(void, attn_error_create, (const char* code, size_t code_size, const char* message, size_t message_size), {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const text = (at, size) => decoder.decode(HEAPU8.slice(at >>> 0, (at >>> 0) + size));
  const error = new Error(text(message, message_size));
  error.code = text(code, code_size);
  error.detail = {};
  Module['error'] = { error, text };
})
EM_JS(void, attn_error_text, (const char* name, size_t name_size, const char* value, size_t value_size), {
  const { error, text } = Module['error'];
  error.detail[text(name, name_size)] = text(value, value_size);
})
EM_JS(void, attn_error_item, (const char* name, size_t name_size, const char* value, size_t value_size), {
  const { error, text } = Module['error'];
  const list = (error.detail[text(name, name_size)] ||= []);
  if (value) list.push(text(value, value_size));
})
EM_JS(void, attn_error_number, (const char* name, size_t name_size, double value), {
  const { error, text } = Module['error'];
  error.detail[text(name, name_size)] = value;
})
EM_JS(void, attn_error_throw, (), {
  const { error } = Module['error'];
  Module['error'] = undefined;
  throw error;
})
// clang-format on

namespace attn::bindings {
namespace {

void create(std::string_view code, std::string_view message) { attn_error_create(code.data(), code.size(), message.data(), message.size()); }

void create_error(const Error& error) {
  create(to_string(error.code()), error.what());
  for (const auto& [name, value] : error.detail()) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      attn_error_text(name.data(), name.size(), text->data(), text->size());
    } else if (const auto* items = std::get_if<std::vector<std::string>>(&value)) {
      attn_error_item(name.data(), name.size(), nullptr, 0);
      for (const std::string& item : *items) attn_error_item(name.data(), name.size(), item.data(), item.size());
    } else {
      attn_error_number(name.data(), name.size(), std::get<double>(value));
    }
  }
}

void create_out_of_memory() { create(to_string(ErrorCode::memory), "out of memory, the WebAssembly heap cannot grow further"); }

}  // namespace

void create_error() {
  try {
    throw;
  } catch (const Error& error) {
    create_error(error);
  } catch (const std::bad_alloc&) {
    create_out_of_memory();
  } catch (const std::length_error&) {
    create_out_of_memory();
  } catch (const std::exception& error) {
    create("INTERNAL", error.what());
  }
}

void throw_created() {
  attn_error_throw();
  __builtin_unreachable();
}

}  // namespace attn::bindings
