#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "attn/tensor/shape.hpp"

namespace attn {

/// A part of a message: words, a whole number or a shape. Messages are put together in one place, out of line: written
/// out as additions of strings at each check they would be a fifth of the WebAssembly binary.
class TextPart {
 public:
  TextPart(const char* words) : words_(words) {}
  TextPart(std::string_view words) : words_(words) {}
  TextPart(const std::string& words) : words_(words) {}
  TextPart(std::integral auto number) : kind_(Kind::number), number_(static_cast<std::int64_t>(number)) {}
  TextPart(const Shape& shape) : kind_(Kind::shape), shape_(&shape) {}

  void append_to(std::string& text) const;

 private:
  enum class Kind : std::uint8_t { words, number, shape };
  Kind kind_ = Kind::words;
  std::string_view words_{};
  std::int64_t number_ = 0;
  const Shape* shape_ = nullptr;
};

std::string text(std::initializer_list<TextPart> parts);

}  // namespace attn
