#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// Built out of line: string additions at each check would be a fifth of the WebAssembly binary.
class TextPart {
 public:
  TextPart(const char* words) : TextPart(std::string_view(words)) {}
  TextPart(std::string_view words) : words_(words.data()), size_(words.size()) {}
  TextPart(const std::string& words) : TextPart(std::string_view(words)) {}
  TextPart(std::integral auto number) : number_(static_cast<std::int64_t>(number)), size_(kNumber) {}
  TextPart(std::floating_point auto number) : real_(static_cast<double>(number)), size_(kReal) {}
  TextPart(const Shape& shape) : shape_(&shape), size_(kShape) {}

  void append_to(std::string& text) const;

 private:
  // In place of a size: one store less for each of 500 parts.
  static constexpr std::size_t kNumber = ~std::size_t{0}, kReal = kNumber - 1, kShape = kNumber - 2;

  union {
    const char* words_;
    std::int64_t number_;
    double real_;
    const Shape* shape_;
  };
  std::size_t size_;  ///< of the words, or one of the constants
};

std::string text(std::initializer_list<TextPart> parts);

}  // namespace attn::detail
