#pragma once

#include <algorithm>
#include <string_view>

namespace attn::detail {

/// Whether a name in a file can only mean a folder next to it. "" is the folder of the file.
inline bool is_folder_name(std::string_view name) {
  return name.size() <= 100 && !name.starts_with('.') && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c == '.';
         });
}

/// Path of modules.json relative to the model folder: "./1_Pooling/" becomes "1_Pooling".
inline std::string_view module_folder(std::string_view path) {
  if (path == ".") return "";
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace attn::detail
