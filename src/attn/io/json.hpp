#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attn::detail {

/// A value of a JSON file. The tree is our own because nlohmann's allocates while it is destroyed, which ends the program when memory is short.
/// What is large is behind a pointer: most values are numbers.
class Json {
 public:
  using Array = std::vector<Json>;

  /// Members sorted by name in one block: a vocabulary has 10^6 of them, and a node of a map for each would take five times as long.
  class Object {
   public:
    using Member = std::pair<std::string, Json>;
    using Members = std::vector<Member>;

    bool empty() const { return members_.empty(); }
    std::size_t size() const { return members_.size(); }
    Members::iterator begin() { return members_.begin(); }
    Members::iterator end() { return members_.end(); }
    Members::const_iterator begin() const { return members_.begin(); }
    Members::const_iterator end() const { return members_.end(); }

    const Json* find(std::string_view name) const;
    Json* find(std::string_view name) { return const_cast<Json*>(std::as_const(*this).find(name)); }
    /// Returns the member, a new null if there is none.
    Json& operator[](std::string_view name);
    void erase(std::string_view name);

    /// For a reader: appends a member, and sorts them when all are there. The last of equal names stays.
    Json& append(std::string name);
    void sort();

   private:
    Members::const_iterator place_of(std::string_view name) const;

    Members members_;
  };

  Json() = default;
  explicit Json(bool value) : value_(value) {}
  explicit Json(double value) : value_(value) {}
  template <class T>
  explicit Json(T value) : value_(std::make_unique<T>(std::move(value))) {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  /// Null where it is something else.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return get<std::string>(); }
  const Array* array() const { return get<Array>(); }
  const Object* object() const { return get<Object>(); }
  Array* array() { return get<Array>(); }
  Object* object() { return get<Object>(); }

  /// A member of an object; null where there is none, or it is null, or this is no object.
  const Json* find(std::string_view name) const;
  /// What it is, for messages: "a string".
  const char* kind() const;

 private:
  template <class T>
  T* get() const {
    const std::unique_ptr<T>* value = std::get_if<std::unique_ptr<T>>(&value_);
    return value != nullptr ? value->get() : nullptr;
  }

  std::variant<std::nullptr_t, bool, double, std::unique_ptr<std::string>, std::unique_ptr<Array>, std::unique_ptr<Object>> value_ = nullptr;
};

/// The file `name` as a tree; of names that appear twice the last one counts, as in Python's json.
/// Throws FORMAT for what is not JSON in UTF-8, more than `max_bytes` of it, or more than 64 levels, UNSUPPORTED for values that would take many
/// times the bytes.
Json parse_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes);
/// The same of a file that Python's json may have written: its NaN, Infinity and -Infinity, which JSON does not have, become strings.
Json parse_python_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes);

}  // namespace attn::detail
