#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "attn/io/gguf/header.hpp"
#include "attn/io/json_text.hpp"

namespace attn::detail::gguf {

/// Throws FORMAT naming `what` if `value` is not UTF-8.
inline std::string json_string(std::string_view what, std::string_view value) {
  std::string quoted;
  if (!append_json_string(quoted, value)) refuse(what, {"valid UTF-8"}, {"invalid UTF-8"});
  return quoted;
}

class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view json) { return add_quoted(text({"\"", name, "\""}), json); }
  JsonObject& add_quoted(std::string_view name, std::string_view json) {
    text_ += text_.empty() ? '{' : ',';
    text_ += text({name, ":", json});
    return *this;
  }
  JsonObject& add_string(std::string_view name, std::string_view value) { return add(name, json_string(name, value)); }
  JsonObject& add_flag(std::string_view name, bool value) { return add(name, value ? "true" : "false"); }
  JsonObject& add_whole(std::string_view name, std::int64_t value) { return add(name, std::to_string(value)); }
  /// The shortest digits of the same float32, as GGUF stores float32.
  JsonObject& add_number(std::string_view name, double value) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, static_cast<float>(value));
    return add(name, std::string_view(digits, end));
  }
  std::string take() { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

}  // namespace attn::detail::gguf
