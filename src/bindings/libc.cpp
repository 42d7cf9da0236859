#include <emscripten/em_js.h>

#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// strtod and snprintf of the C library are a tenth of the .wasm. These functions use the JavaScript engine instead:
// JSON headers contain only small integers, and error messages print numbers.

// clang-format off
EM_JS(double, attn_number, (const char* text, size_t size), {
  return Number(new TextDecoder().decode(HEAPU8.slice(text >>> 0, (text >>> 0) + size)));
})
// As %g: six digits, no trailing zeros, an exponent of two digits below 1e-4 and from 1e6 on.
EM_JS(int, attn_general, (double value, char* to), {
  const [digits, exponent] = value.toExponential(5).split('e');
  let text = String(+value.toPrecision(6));
  if (exponent === undefined) text = text.slice(0, value < 0 ? 4 : 3).toLowerCase();
  else if (exponent < -4 || exponent > 5) text = +digits + 'e' + exponent[0] + exponent.slice(1).padStart(2, 0);
  else if (Object.is(value, -0)) text = '-0';
  for (let i = 0; i < text.length; ++i) HEAPU8[(to >>> 0) + i] = text.charCodeAt(i);
  return text.length;
})
// clang-format on

extern "C" {

// The JSON reader passes text that ends with the number. All three functions must be defined, because they are in one
// file of the C library, which the linker would otherwise add.
double strtod(const char* text, char** end) {
  const std::size_t size = std::strlen(text);
  *end = const_cast<char*>(text) + size;
  return attn_number(text, size);
}
float strtof(const char* text, char** end) { return static_cast<float>(strtod(text, end)); }
long double strtold(const char* text, char** end) { return strtod(text, end); }

// Supports "%g", for attn::text. Other callers (the JSON reader, the C++ library) format exception messages that are
// never shown, and get the format itself; cmake/collect-wasm.mjs refuses unknown callers.
int snprintf(char* to, std::size_t size, const char* format, ...) {
  if (std::strcmp(format, "%g") != 0) {
    const std::size_t length = std::strlen(format);
    if (size > 0) std::strncpy(to, format, size - 1)[size - 1] = '\0';
    return static_cast<int>(length);
  }
  va_list arguments;
  va_start(arguments, format);
  const int length = attn_general(va_arg(arguments, double), to);
  va_end(arguments);
  to[length] = '\0';
  return length;
}

// Called by the C++ library if a thread or a lock fails, for an exception message that is never shown.
int strerror_r(int, char* to, std::size_t size) {
  if (size > 0) *to = '\0';
  return 0;
}

}  // extern "C"
