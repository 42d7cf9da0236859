#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "c/handles.hpp"

struct attn_text_model {
  attn::TextModel module;
};

namespace attn::c {

inline std::string to_string(std::string_view op, std::string_view argument, const attn_text& text) {
  if (text.size > 0) check_pointer(op, text.data, argument);
  return {text.data, text.size};
}

inline std::vector<std::string> to_strings(std::string_view op, const attn_text* texts, std::size_t count, std::string_view argument = "texts") {
  if (count > 0) check_pointer(op, texts, argument);
  std::vector<std::string> strings;
  strings.reserve(count);
  for (std::size_t i = 0; i < count; ++i) strings.push_back(to_string(op, argument, texts[i]));
  return strings;
}

}  // namespace attn::c
