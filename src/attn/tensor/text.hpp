#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// A part of a message: words, a number or a shape. Messages are built out of line: string additions at each check
/// would be a fifth of the WebAssembly binary.
class TextPart {
 public:
  TextPart(const char* words) : TextPart(std::string_view(words)) {}
  TextPart(std::string_view words) : kind_(Kind::words), words_{words.data(), words.size()} {}
  TextPart(const std::string& words) : TextPart(std::string_view(words)) {}
  TextPart(std::integral auto number) : kind_(Kind::number), number_(static_cast<std::int64_t>(number)) {}
  TextPart(std::floating_point auto number) : kind_(Kind::real), real_(static_cast<double>(number)) {}
  TextPart(const Shape& shape) : kind_(Kind::shape), shape_(&shape) {}

  void append_to(std::string& text) const;

 private:
  enum class Kind : std::uint8_t { words, number, real, shape };
  struct Words {
    const char* data;
    std::size_t size;
  };
  Kind kind_;
  union {
    Words words_;
    std::int64_t number_;
    double real_;
    const Shape* shape_;
  };
};

std::string text(std::initializer_list<TextPart> parts);

}  // namespace attn::detail
