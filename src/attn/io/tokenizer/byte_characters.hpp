#pragma once

#include <array>
#include <cstddef>

namespace attn::detail {

/// Byte-level characters: printable bytes are themselves, the others count from U+0100.
inline constexpr std::array<char32_t, 256> kByteCharacters = [] {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) characters[byte] = (byte > 32 && byte < 127) || (byte > 160 && byte != 173) ? byte : next++;
  return characters;
}();

}  // namespace attn::detail
