#include <emscripten/em_js.h>

#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// Uses the JavaScript engine, because strtod and snprintf of the C library are a tenth of the .wasm.

// clang-format off
EM_JS(double, attn_number, (const char* text, size_t size), {
  return Number(new TextDecoder().decode(HEAPU8.slice(text >>> 0, (text >>> 0) + size)));
})
// %g: six digits, no trailing zeros, an exponent of two digits below 1e-4 and from 1e6.
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

// The JSON reader's text ends with the number. All three share a file of the C library, so one missing function would
// link it.
double strtod(const char* text, char** end) {
  const std::size_t size = std::strlen(text);
  *end = const_cast<char*>(text) + size;
  return attn_number(text, size);
}
float strtof(const char* text, char** end) { return static_cast<float>(strtod(text, end)); }
long double strtold(const char* text, char** end) { return strtod(text, end); }

// Formats other than "%g" (attn::text) are for messages that are never shown; cmake/collect-wasm.mjs refuses unknown
// ones.
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

// For a message that is never shown.
int strerror_r(int, char* to, std::size_t size) {
  if (size > 0) *to = '\0';
  return 0;
}

}  // extern "C"
