#include "attn/tensor/text.hpp"

#include <cstdio>

namespace attn::detail {
void TextPart::append_to(std::string& text) const {
  switch (size_) {
    case kNumber:
      text += std::to_string(number_);
      return;
    case kReal: {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%g", real_);
      text += digits;
      return;
    }
    case kShape:
      text += to_string(*shape_);
      return;
    default:
      text.append(words_, size_);
  }
}

std::string text(std::initializer_list<TextPart> parts) {
  std::string result;
  for (const TextPart& part : parts) part.append_to(result);
  return result;
}

}  // namespace attn::detail
