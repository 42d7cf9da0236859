#pragma once

#include <algorithm>
#include <string_view>

namespace attn::detail {

/// Returns whether a file may use this name for a folder next to it: such a name cannot lead anywhere else. "" is the
/// folder of the file.
inline bool is_folder_name(std::string_view name) {
  return name.size() <= 100 && !name.starts_with('.') && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c == '.';
         });
}

/// Normalises a path of modules.json as joining it to the model folder would: "./1_Pooling/" becomes "1_Pooling".
inline std::string_view module_folder(std::string_view path) {
  if (path == ".") return "";
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace attn::detail
