#pragma once

#include <string>
#include <string_view>

// web/lib/src/cli/written.ts writes the same bytes.
namespace command {

/// Shortest unique digits in JavaScript's notation; null for NaN and infinity.
std::string number(float value);
std::string json_string(std::string_view text);
/// Removes tabs and line breaks, which separate words.
std::string column(std::string word);

template <class Items, class Write>
std::string joined(const Items& items, std::string_view between, Write write) {
  std::string all;
  bool first = true;
  for (const auto& item : items) {
    if (!first) all += between;
    first = false;
    all += write(item);
  }
  return all;
}

template <class Items, class Write>
std::string array(const Items& items, Write write) {
  std::string all(1, '[');
  all += joined(items, ",", write);
  return all += ']';
}

}  // namespace command
