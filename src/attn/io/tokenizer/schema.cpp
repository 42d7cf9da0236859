#include "attn/io/tokenizer/schema.hpp"

#include <cmath>

#include "attn/io/tokenizer/unicode.hpp"

namespace attn::detail {

void Value::refuse(ErrorCode code, std::initializer_list<TextPart> expected, std::initializer_list<TextPart> got, std::string_view help) const {
  fail(code, file_, path_.empty() ? "the file" : path_, expected, got, help);
}

std::string Value::join(std::string_view name) const { return path_.empty() ? std::string(name) : text({path_, ".", name}); }

std::int32_t Value::whole(std::int64_t most) const {
  const double value = number();
  if (!(value >= 0) || value > static_cast<double>(most) || std::floor(value) != value)
    refuse(ErrorCode::format, {"a whole number from 0 to ", most}, {value});
  return static_cast<std::int32_t>(value);
}

const std::string& Value::token(std::size_t most) const {
  at_most(count_characters(string()), most, " characters");
  return string();
}

void Value::at_most(std::size_t count, std::size_t most, const char* what) const {
  if (count > most) refuse(ErrorCode::unsupported, {"at most ", most, what}, {count, what});
}

void PartCount::add(const Value& part) {
  if (++count_ > most_) part.refuse(ErrorCode::unsupported, {"at most ", most_, " parts"}, {"part ", count_, " of its kind"});
}

void refuse_name(const Value& value, std::string words) {
  if (value.is_there()) value.refuse(ErrorCode::unsupported, {words}, {"\"", value.string(), "\""});
  value.refuse(ErrorCode::unsupported, {words}, {value.kind()});
}

}  // namespace attn::detail
