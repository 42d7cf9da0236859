#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attn::detail {

/// A value of a JSON file. The tree is our own because nlohmann's allocates while it is destroyed, which ends the program when memory is short.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;
  template <class T>
  explicit Json(T value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  /// Null where it is something else.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  Array* array() { return std::get_if<Array>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }

  /// A member of an object; null where there is none, or it is null, or this is no object.
  const Json* find(std::string_view name) const;
  /// What it is, for messages: "a string".
  const char* kind() const;

 private:
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value_ = nullptr;
};

/// The file `name` as a tree; of names that appear twice the last one counts, as in Python's json.
/// Throws FORMAT for what is not JSON in UTF-8, more than `max_bytes` of it, or more than 64 levels.
Json parse_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes);

}  // namespace attn::detail
