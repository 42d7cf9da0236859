#include "attn/tensor/text.hpp"

#include <cstdio>

namespace attn::detail {
void TextPart::append_to(std::string& text) const {
  switch (kind_) {
    case Kind::words:
      text.append(words_.data, words_.size);
      return;
    case Kind::number:
      text += std::to_string(number_);
      return;
    case Kind::real: {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%g", real_);
      text += digits;
      return;
    }
    case Kind::shape:
      text += to_string(*shape_);
      return;
  }
}

std::string text(std::initializer_list<TextPart> parts) {
  std::string result;
  for (const TextPart& part : parts) part.append_to(result);
  return result;
}

}  // namespace attn::detail
