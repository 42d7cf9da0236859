#include "errors.hpp"

#include <emscripten/val.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "attn/ops/attention.hpp"

namespace attn::bindings {
namespace {

using emscripten::val;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// "key_padding_mask" -> "keyPaddingMask" in every word of the text but the names of traces, which are the same in both.
std::string camel_case(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      result += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    const bool keep = std::find(kTraceNames.begin(), kTraceNames.end(), word) != kTraceNames.end();
    for (std::size_t j = 0; j < word.size(); ++j) {
      const bool joint = !keep && word[j] == '_' && j > 0 && j + 1 < word.size();
      result += joint ? static_cast<char>(std::toupper(static_cast<unsigned char>(word[++j]))) : word[j];
    }
    i = end;
  }
  return result;
}

/// Names of tensors and of fields of a file stay as the file has them.
bool speaks_of_files(ErrorCode code) { return code == ErrorCode::mismatch || code == ErrorCode::format || code == ErrorCode::unsupported; }

val to_val(const std::vector<std::string>& names) {
  val array = val::array();
  for (std::size_t i = 0; i < names.size(); ++i) array.set(i, names[i]);
  return array;
}

[[noreturn]] void throw_error(ErrorCode code, const std::string& message, const val& detail) {
  val error = val::global("Error").new_(message);
  error.set("code", std::string(to_string(code)));
  error.set("detail", detail);
  error.throw_();
}

}  // namespace

void throw_to_javascript(const Error& error) {
  const bool verbatim = speaks_of_files(error.code());
  val detail = val::object();
  for (const auto& [name, value] : error.detail()) {
    if (const auto* text = std::get_if<std::string>(&value))
      detail.set(name, verbatim ? *text : camel_case(*text));
    else if (const auto* names = std::get_if<std::vector<std::string>>(&value))
      detail.set(name, to_val(*names));
    else
      detail.set(name, std::get<double>(value));
  }
  throw_error(error.code(), verbatim ? error.what() : camel_case(error.what()), detail);
}

void throw_out_of_memory() { throw_error(ErrorCode::memory, "out of memory: the WebAssembly heap cannot grow further", val::object()); }

void throw_internal(const char* what) { throw_error(ErrorCode::internal, what, val::object()); }

}  // namespace attn::bindings
