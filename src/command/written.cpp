#include "written.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "attn/io/json_text.hpp"

namespace command {

std::string number(float value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0) return "0";
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*e", digits - 1, static_cast<double>(value));
    if (std::strtof(text, nullptr) == value) break;
  }
  std::string digits;
  const char* at = text;
  for (; *at != 'e'; ++at)
    if (*at != '.' && *at != '-') digits += *at;
  digits.erase(digits.find_last_not_of('0') + 1);
  const int point = std::atoi(at + 1) + 1, count = static_cast<int>(digits.size());
  const std::string sign = value < 0 ? "-" : "";
  const auto zeros = [](int many) { return std::string(static_cast<std::size_t>(many), '0'); };
  if (count <= point && point <= 21) return sign + digits + zeros(point - count);
  if (0 < point && point <= 21) return sign + digits.insert(static_cast<std::size_t>(point), 1, '.');
  if (-6 < point && point <= 0) return sign + "0." + zeros(-point) + digits;
  if (count > 1) digits.insert(1, 1, '.');
  return sign + digits + (point > 0 ? "e+" : "e-") + std::to_string(std::abs(point - 1));
}

std::string json_string(std::string_view text) {
  std::string all;
  attn::detail::append_json_string(all, text);
  return all;
}

std::string column(std::string word) {
  for (char& each : word)
    if (each == '\t' || each == '\r' || each == '\n') each = ' ';
  return word;
}

}  // namespace command
