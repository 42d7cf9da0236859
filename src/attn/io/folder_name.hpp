#pragma once

#include <algorithm>
#include <string_view>

namespace attn::detail {

/// Whether a file may name a folder beside it so: such a name leads nowhere else. "" is the file's own folder.
inline bool is_folder_name(std::string_view name) {
  return name.size() <= 100 && !name.starts_with('.') && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c == '.';
         });
}

}  // namespace attn::detail
