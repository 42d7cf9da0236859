#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "attn/io/json.hpp"
#include "attn/io/tokenizer_limits.hpp"
#include "attn/tensor/error.hpp"

namespace attn::detail {

class Value {
 public:
  Value(std::string_view file, const Json* json, std::string path = "") : file_(file), json_(json), path_(std::move(path)) {}

  bool is_there() const { return json_ != nullptr && !json_->is_null(); }
  const char* kind() const { return is_there() ? json_->kind() : "missing"; }
  [[noreturn]] void refuse(ErrorCode code, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got,
                           std::string_view help = {}) const;

  Value operator[](std::string_view name) const { return {file_, json_ != nullptr ? json_->find(name) : nullptr, join(name)}; }
  Value operator[](std::size_t place) const { return {file_, &array()[place], join(std::to_string(place))}; }

  bool is_array() const { return is_there() && json_->array() != nullptr; }
  bool is_string() const { return is_there() && json_->string() != nullptr; }
  const Json::Object& object() const { return as(json_ != nullptr ? json_->object() : nullptr, "an object"); }
  const Json::Array& array() const { return as(json_ != nullptr ? json_->array() : nullptr, "an array"); }
  const std::string& string() const { return as(json_ != nullptr ? json_->string() : nullptr, "a string"); }
  bool boolean() const { return as(json_ != nullptr ? json_->boolean() : nullptr, "true or false"); }
  double number() const { return as(json_ != nullptr ? json_->number() : nullptr, "a number"); }
  std::int32_t whole(std::int64_t most = 0x7fffffff) const;
  const std::string& token(std::size_t most = kMaxToken) const;
  void at_most(std::size_t count, std::size_t most, const char* what) const;

  bool boolean_or(bool otherwise) const { return is_there() ? boolean() : otherwise; }
  std::string token_or(std::string_view otherwise, std::size_t most) const { return is_there() ? token(most) : std::string(otherwise); }

 private:
  template <class T>
  const T& as(const T* value, const char* expected) const {
    if (value == nullptr) refuse(ErrorCode::format, {expected}, {kind()});
    return *value;
  }
  std::string join(std::string_view name) const;

  std::string_view file_;
  const Json* json_;
  std::string path_;
};

class PartCount {
 public:
  explicit PartCount(std::size_t most) : most_(most) {}
  void add(const Value& part);

 private:
  std::size_t most_, count_ = 0;
};

template <class T>
struct Named {
  std::string_view name;
  T what;
};

[[noreturn]] void refuse_name(const Value& value, std::string words);

template <class T, std::size_t N>
const T& choose(const Named<T> (&table)[N], const Value& value) {
  std::string words;
  for (const Named<T>& each : table) {
    if (value.is_there() && value.string() == each.name) return each.what;
    words += (words.empty() ? "" : ", ") + std::string(each.name);
  }
  refuse_name(value, std::move(words));
}

}  // namespace attn::detail
