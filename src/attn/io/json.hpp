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

/// Not nlohmann's tree, whose destructor allocates, which terminates the program if memory is short. Strings, arrays
/// and objects are behind pointers because most values are numbers.
class Json {
 public:
  using Array = std::vector<Json>;

  /// Sorted by name. A vocabulary can have 10^6 members, and a map would take five times as long.
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
    Json& operator[](std::string_view name);
    void erase(std::string_view name);

    /// Does not sort; call sort() after the last one.
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
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return get<std::string>(); }
  const Array* array() const { return get<Array>(); }
  const Object* object() const { return get<Object>(); }
  Array* array() { return get<Array>(); }
  Object* object() { return get<Object>(); }

  const Json* find(std::string_view name) const;
  const char* kind() const;

 private:
  template <class T>
  T* get() const {
    const std::unique_ptr<T>* value = std::get_if<std::unique_ptr<T>>(&value_);
    return value != nullptr ? value->get() : nullptr;
  }

  std::variant<std::nullptr_t, bool, double, std::unique_ptr<std::string>, std::unique_ptr<Array>, std::unique_ptr<Object>> value_ = nullptr;
};

/// Keeps the last of equal names, as Python's json. Throws FORMAT unless the bytes are JSON in UTF-8, at most
/// `max_bytes` and 64 levels deep; UNSUPPORTED if the values need many times the bytes.
Json parse_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes);
/// Reads NaN, Infinity and -Infinity, which Python writes, as strings.
Json parse_python_json(std::string_view name, std::span<const std::uint8_t> bytes, std::size_t max_bytes);

}  // namespace attn::detail
